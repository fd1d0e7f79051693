"""The way through the course is written by tools/make_links.py, and no link of a file dangles."""

import re
from pathlib import Path

import nbformat
import pytest

from course_lib.progress import LECTURES
from tools import make_links

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("notebooks", "exercises", "solutions")
NOTEBOOKS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ipynb"))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)|(?:href|src)=['\"]([^'\"#]+)")


def texts(path):
    """The prose of a file: of a notebook its markdown cells."""
    if path.suffix != ".ipynb":
        return [path.read_text(encoding="utf-8")]
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def targets(text):
    """Where the links of a text lead to inside the course."""
    found = [a or b for a, b in LINK.findall(text)]
    return [target for target in found if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("path", NOTEBOOKS + PAGES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_no_link_dangles(path):
    for text in texts(path):
        for target in targets(text):  # work/ holds copies of exercises/, made by `make lab`
            made = re.sub("^../work/", "../exercises/", target)
            assert (path.parent / made).exists(), f"{target} is not there"


def test_a_dangling_link_would_be_seen():
    text = "[a](nowhere.ipynb), ![b](x.svg 'title'), <a href='c.md'>, [d](https://e.org), [f](#g)"
    assert targets(text) == ["nowhere.ipynb", "x.svg", "c.md"]


def test_the_last_cells_are_what_the_tool_writes():
    changed = make_links.make(check=True)
    assert changed == [], "run `make notebooks`, or tools/make_links.py and tools/make_exercises.py"


def book(path, *sources):
    cells = [nbformat.v4.new_markdown_cell(source) for source in sources]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


def test_only_what_exists_is_a_link(tmp_path):
    for file in ("notebooks/00_start", "notebooks/02_machines"):
        book(tmp_path / f"{file}.ipynb", "# Title")
    before = make_links.of_lecture(LECTURES[2], tmp_path)
    assert "Exercise" not in before and "Next: lecture 03, All-reduce (to come)." in before
    for file in ("solutions/02_machines", "notebooks/03_all_reduce"):
        book(tmp_path / f"{file}.ipynb", "# Title")
    after = make_links.of_lecture(LECTURES[2], tmp_path)
    assert targets(after) == [
        "../work/02_machines.ipynb",
        "../exercises/02_machines.ipynb",
        "../notebooks/03_all_reduce.ipynb",
        "../notebooks/00_start.ipynb",
    ]
    assert "Before: lecture 01, Collectives (to come)." in after
    assert targets(make_links.of_exercise(LECTURES[2], tmp_path)) == [
        "../notebooks/02_machines.ipynb",
        "../notebooks/03_all_reduce.ipynb",
    ]


def test_the_first_and_the_last_have_one_neighbour(tmp_path):
    assert "Before" not in make_links.of_lecture(LECTURES[0], tmp_path)
    assert "Next" not in make_links.of_lecture(LECTURES[-1], tmp_path)
    assert "Next" not in make_links.of_exercise(LECTURES[-1], tmp_path)


def test_a_second_call_changes_nothing_and_the_cell_stays_last(tmp_path):
    path = tmp_path / "notebooks" / "00_start.ipynb"
    book(path, "# Title", "text")
    assert make_links.make(tmp_path, check=True) == [path]
    assert "links" not in path.read_text()
    assert make_links.make(tmp_path) == [path] and make_links.make(tmp_path) == []
    cells = nbformat.read(path, as_version=4).cells
    assert [cell.id == "links" for cell in cells] == [False, False, True]
    cells.append(nbformat.v4.new_markdown_cell("more"))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    assert make_links.make(tmp_path) == [path]
    assert nbformat.read(path, as_version=4).cells[-1].id == "links"
