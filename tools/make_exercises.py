"""Make exercises/ from solutions/: the same notebooks without outputs, solutions and notes to
authors.

    python tools/make_exercises.py [--check]

In a solution cell the lines from `### BEGIN SOLUTION` to `### END SOLUTION` become one line,
`raise NotImplementedError("Task 0.1")`. Cells tagged `solution` are left out. --check writes
nothing, and fails if a file of exercises/ differs from what its solution makes.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat

from course_lib.checks import TASKS

ROOT = Path(__file__).resolve().parent.parent
SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION[ \t]*$", re.MULTILINE | re.DOTALL
)
MARKER = "### BEGIN SOLUTION"


class BadSolution(Exception):
    """A solution notebook from which no exercise can be made; the text names the cell."""


def exercise(notebook):
    """The exercise that belongs to a solution notebook, as a new notebook."""
    made = nbformat.from_dict(notebook)
    made.cells = [cell for cell in made.cells if "solution" not in cell.metadata.get("tags", [])]
    for cell in made.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.source = stub(cell)
    return made


def stub(cell):
    """The cell's source with its solution replaced by the exception that names the task."""
    grading = cell.metadata.get("nbgrader", {})
    if not grading.get("solution"):
        if MARKER in cell.source:
            raise BadSolution(f"cell {cell.id} has a solution and no nbgrader metadata")
        return cell.source
    name = grading["grade_id"]
    if name not in TASKS:
        raise BadSolution(f"cell {cell.id}: there is no check for {name!r}")
    line = rf'\1raise NotImplementedError("Task {TASKS[name].number}")'
    source, count = SOLUTION.subn(line, cell.source)
    if count != 1:
        raise BadSolution(f"cell {cell.id} has {count} solutions, not one")
    return source


def text_of(path):
    """What the exercise file of the solution at `path` must hold."""
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    return nbformat.writes(exercise(notebook)) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Make exercises/ from solutions/.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a change")
    options = parser.parse_args()
    differs = 0
    for path in sorted((ROOT / "solutions").glob("*.ipynb")):
        target = ROOT / "exercises" / path.name
        text = text_of(path)
        same = target.exists() and target.read_text(encoding="utf-8") == text
        differs += not same
        if not same and not options.check:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
        print(f"exercises/{path.name}: {'unchanged' if same else 'differs'}")
    return 1 if options.check and differs else 0


if __name__ == "__main__":
    sys.exit(main())
