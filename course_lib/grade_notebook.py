"""A learner's notebook as text: which cells answer which task, and what else those cells need.

Nothing here runs a line of it. For each task the answer cell is found by its nbgrader id, or else
by the name of the function, and with it the statements of other cells that bind the names it uses.
Statements that bind nothing (trying out, drawing, checking, changing other modules) never run, so
that a loop or an exit there harms no task.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from .magic import global_names


class Unreadable(Exception):
    """The file is no notebook of this course; its text says why."""


@dataclass
class Answer:
    """What was found for one task. `source`: (file name, first line, text) of each piece, in order.

    `problem` is "" or a verdict code ("no-answer", "syntax-error") with its `message`.
    """

    name: str
    source: list[tuple[str, int, str]] = field(default_factory=list)
    problem: str = ""
    message: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Statement:
    """One top-level statement of a code cell. `cell` counts all cells of the notebook from 1."""

    cell: int
    line: int
    text: str
    reads: frozenset[str]
    binds: frozenset[str]
    is_import: bool


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """The notebook in `path`. Unreadable when there is none, or when it is no notebook."""
    try:
        return nbformat.read(path, as_version=4)
    except Exception as trouble:
        raise Unreadable(
            f"{path.name} cannot be read as a notebook: {type(trouble).__name__}"
        ) from trouble


def exercise_of(notebook, path: Path, exercises: set[str]) -> str:
    """The exercise that the notebook belongs to: by its metadata, or by its file name. Unreadable
    if by neither, and for a lecture, which has the file name of its exercise.
    """
    said = notebook.metadata.get("lockstep", {})
    named = said.get("exercise") if isinstance(said, dict) else None
    if named not in exercises:
        _refuse_lecture(notebook, path, exercises)
    for candidate in (named, path.stem):
        if candidate in exercises:
            return candidate
    for exercise in sorted(exercises):
        if path.stem.startswith(exercise):
            return exercise
    raise Unreadable(f"{path.name} is no exercise of this course")


def _refuse_lecture(notebook, path: Path, exercises: set[str]) -> None:
    """Raise Unreadable when the notebook's first cell is the title of a lecture."""
    title = re.match(r"# Lecture (\d\d)\b", notebook.cells[0].source if notebook.cells else "")
    if title is None:
        return
    own = [exercise for exercise in sorted(exercises) if exercise.startswith(title[1])]
    where = (
        f"Its exercise is exercises/{own[0]}.ipynb; your answers stand in the copy, "
        f"work/{own[0]}.ipynb: grade that one"
        if own
        else "It has no exercise"
    )
    raise Unreadable(f"{path.name} is lecture {title[1]}, and a lecture is not graded. {where}")


def find_answer(notebook, path: Path, name: str) -> Answer:
    """The learner's answer to the task whose function is called `name`."""
    answer = Answer(name)
    cells = list(enumerate(notebook.cells, 1))
    marked = [(n, c) for n, c in cells if c.metadata.get("nbgrader", {}).get("grade_id") == name]
    code = [(n, c) for n, c in marked if c.cell_type == "code"]
    if len(marked) > 1:
        answer.notes.append(
            f"{len(marked)} cells carry the id {name!r}; they are read in order, and the last "
            "definition counts"
        )
    parsed = {n: _statements(n, c.source) for n, c in cells if c.cell_type == "code"}
    broken = [n for n, _ in code if isinstance(parsed[n], SyntaxError)]
    if broken:
        error = parsed[broken[0]]
        answer.problem, answer.message = (
            "syntax-error",
            f"cell {broken[0]} line {error.lineno}: {error.msg}",
        )
        return answer
    whole = [s for found in parsed.values() if isinstance(found, list) for s in found if s.binds]
    mine = [s for n, _ in code for s in parsed[n] if s.binds]
    if not any(name in s.binds for s in mine):
        elsewhere = [s for s in whole if name in s.binds and not s.is_import]
        if not elsewhere:
            answer.problem, answer.message = "no-answer", _missing(name, marked, mine)
            return answer
        answer.notes.append(
            f"{name} was found in cell {elsewhere[-1].cell}, not in the cell that carries its id"
        )
        mine = elsewhere
    answer.source = [(f"{path.stem} cell {s.cell}", s.line, s.text) for s in _closure(mine, whole)]
    return answer


def _missing(name: str, marked, mine: list[Statement]) -> str:
    if not marked:
        return f"the cell with the id {name!r} is gone, and no other cell defines {name}"
    if all(cell.cell_type != "code" for _, cell in marked):
        return f"cell {marked[0][0]} (id {name!r}) is no code cell any more"
    found = sorted({n for s in mine for n in s.binds}) or ["nothing"]
    return f"cell {marked[0][0]} (id {name!r}) defines {', '.join(found)}, and not {name}"


def _closure(mine: list[Statement], whole: list[Statement]) -> list[Statement]:
    """`mine` and every statement that binds a name which they need, in the notebook's order."""
    stars = [s for s in whole if s.is_import and s.binds == {"*"}]
    chosen, wanted = {*mine, *stars}, {n for s in mine for n in s.reads}
    settled = {n for s in mine for n in s.binds}
    while wanted:
        name = wanted.pop()
        if name in settled:
            continue
        settled.add(name)
        for s in whole:
            if name in s.binds and s not in chosen:
                chosen.add(s)
                wanted |= s.reads
    order = {s: i for i, s in enumerate(whole)}
    return sorted(chosen, key=lambda s: (not s.is_import, order[s]))


def _statements(cell: int, source: str) -> list[Statement] | SyntaxError:
    """The cell's top-level statements; magics and shell lines become calls, as in IPython."""
    try:
        try:
            return [_statement(cell, node, source) for node in ast.parse(source).body]
        except SyntaxError as error:
            from IPython.core.inputtransformer2 import TransformerManager

            text = TransformerManager().transform_cell(source)
            if text.strip() == source.strip():
                return error
            return [_statement(cell, node, text) for node in ast.parse(text).body]
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(f"{type(error).__name__}: {error}")


def _statement(cell: int, node: ast.stmt, source: str) -> Statement:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    text = "\n".join(source.splitlines()[first - 1 : node.end_lineno])
    if ";" in text and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        text, first = ast.unparse(node), node.lineno  # two statements may share the line
    reads, binds = global_names(text)
    is_import = isinstance(node, (ast.Import, ast.ImportFrom))
    if is_import and node.names[0].name == "*":
        binds = {"*"}
    return Statement(cell, first, text, frozenset(reads), frozenset(binds), is_import)
