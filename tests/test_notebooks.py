"""Stored notebooks and the library keep the limits of the course; no file names a machine."""

import ast
import io
import re
import subprocess
import tokenize
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.notebook_rules import WIDGET_VIEW, problems, word_count

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("notebooks", "solutions", "exercises")
NOTEBOOKS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ipynb"))]
MOST_FILE_LINES, MOST_FUNCTION_LINES, MOST_LIBRARY_LINES = 300, 40, 5000
LIBRARY = ROOT / "course_lib"
SOURCES = sorted(path for path in LIBRARY.rglob("*") if path.suffix in (".py", ".js", ".css"))
TOOLS = sorted((ROOT / "tools").glob("*.py"))
# A path of somebody's machine. A relative ../work/ is not one, nor is the /home of a URL.
MACHINE = re.compile(r"(?<![\w.~/*-])/(?:work|root|home|Users|opt)/\w")


def name(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_holds_notebooks(folder):
    assert list((ROOT / folder).glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_a_notebook_keeps_the_rules(path):
    nbformat.validate(nbformat.read(path, as_version=4))
    assert problems(path, path.parent.name) == []


def code(source="1", outputs=(), count=1, tags=()):
    return new_code_cell(
        source, outputs=list(outputs), execution_count=count, metadata={"tags": list(tags)}
    )


def shown(key, value):
    return new_output("display_data", {key: value})


BROKEN = {
    "never run": [code(count=None)],
    "21 lines of code": [code("x = 1\n" * 21)] + [code()] * 2,
    "median code cell has 7": [code("x = 1\n" * 7)],
    "81 words of prose": [new_markdown_cell("word " * 81)],
    "82 words of prose": [new_markdown_cell(f"<details>{'word ' * 82}</details>")],
    "2 of 9 code cells": [code(tags=["nbval-ignore-output"])] * 2 + [code()] * 7,
    "import *": [code("from course_lib import *")],
    "an installation": [code("!pip install x")],
    "a path edit": [code("import sys\nsys.path.append('..')")],
    "steers nbval": [code("# NBVAL_SKIP\n1")],
    "steers nbval by a skip tag": [code(tags=["nbval-skip"])],
    "path of one machine: /home/a": [code(outputs=[shown("text/plain", "/home/ann/x.py")])],
    "path of one machine: /tmp/x": [code("open('/tmp/x')")],
    "path of one machine: C:\\Users\\": [new_markdown_cell("C:\\Users\\ann")],
    "model id": [code(outputs=[shown(WIDGET_VIEW, {"model_id": "0"})])],
    "stderr": [code(outputs=[new_output("stream", name="stderr", text="warning")])],
    "KiB": [code(outputs=[shown("text/html", "x" * 310_000)])],
}


def written(path, cells, **metadata):
    for number, cell in enumerate(cells := [nbformat.from_dict(cell) for cell in cells]):
        cell.id = f"cell-{number}"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(new_notebook(cells=cells, metadata={**kernel, **metadata}), path)
    return path


@pytest.mark.parametrize("words", BROKEN)
def test_a_broken_rule_is_named(tmp_path, words):
    found = problems(written(tmp_path / "x.ipynb", BROKEN[words]), "notebooks")
    assert len(found) == 1 and words in found[0]


def test_file_metadata_is_judged(tmp_path):
    other = {"name": "mine", "display_name": "mine"}
    path = written(tmp_path / "x.ipynb", [code()], widgets={}, kernelspec=other)
    assert problems(path, "notebooks") == [
        "stores widget state (metadata.widgets)",
        "names the kernel 'mine'",
    ]


def test_a_good_notebook_breaks_no_rule(tmp_path):
    prose = new_markdown_cell("word " * 79 + "\n\n| a | table | row |\n\n`../work/00.ipynb`")
    timing = code("import time\ntime.time()", tags=["nbval-ignore-output"])
    path = written(tmp_path / "x.ipynb", [prose, timing] + [code("x = 1\n" * 6)] * 6)
    assert problems(path, "notebooks") == []


def test_words_are_those_that_are_read():
    text = "**One** `two` [three](http://x.y/z) $a + b$.\n\n| no | no |\n\n```\nno no\n```\n<br/>"
    assert word_count(text) == 4


def longest_function(path):
    """(lines, name) of the longest function of a Python file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    return max(((node.end_lineno - node.lineno + 1, node.name) for node in nodes), default=(0, ""))


@pytest.mark.parametrize("path", SOURCES + TOOLS, ids=name)
def test_a_source_file_is_small(path):
    length = len(path.read_text().splitlines())
    assert length <= MOST_FILE_LINES
    if path.suffix == ".py":
        lines, function = longest_function(path)
        assert lines <= MOST_FUNCTION_LINES, f"{function} has {lines} lines"


def code_lines(path):
    """Number of lines to understand: not blank, comments, docstrings, imports or export lists."""
    text = path.read_text()
    words = set()
    for node in ast.walk(ast.parse(text)):
        exports = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        if exports or isinstance(node, (ast.Import, ast.ImportFrom)):
            words.update(range(node.lineno, node.end_lineno + 1))
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            words.update(range(first.lineno, first.end_lineno + 1))
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent and token.string:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - words)


def test_engine_and_strategies_fit_in_5000_lines_of_code():
    """Pictures, checks and the grader aside; documentation is not what makes code long."""
    apart = ("viz", "checks", "grade", "magic", "progress")
    counted = [
        path
        for path in SOURCES
        if path.suffix == ".py" and not path.relative_to(LIBRARY).parts[0].startswith(apart)
    ]
    total = sum(map(code_lines, counted))
    print(f"{total} lines of code in {len(counted)} files")
    assert counted and total <= MOST_LIBRARY_LINES


def test_no_tracked_file_names_a_machine():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git clone: nothing tells which files belong to the course")
    found = []
    for file in filter(None, listed.stdout.split("\0")):
        path = ROOT / file
        if path == Path(__file__) or not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{file}: {match.group()}" for match in MACHINE.finditer(text)]
    assert found == []
