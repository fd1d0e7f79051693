"""The grader finds an answer and what it needs in any notebook, and says why where it cannot."""

import nbformat
import pytest

from course_lib.grade_notebook import find_answer
from tests.test_grade import GOOD, NAME, cell, notebook


def found(tmp_path, *cells):
    path = notebook(tmp_path, *cells)
    return find_answer(nbformat.read(path, as_version=4), path, NAME)


def test_what_an_answer_needs_from_other_cells_comes_along(tmp_path):
    answer = found(
        tmp_path,
        cell("STEP = 1\ndef neighbour(rank, size):\n    return (rank - STEP) % size\nSTEP = 1"),
        cell("import os\nos._exit(3)\nwhile True:\n    pass\nunused = 5"),
        cell(
            "def exchange_with_neighbour(x, group):\n    local = neighbour(1, 2)\n    return x",
            NAME,
        ),
        cell("local = open('nowhere')\nrun = exchange_with_neighbour(1, 2)"),
        cell("torch.allclose = lambda *a: True"),
    )
    assert [text.partition("\n")[0] for _, _, text in answer.source] == [
        "STEP = 1",
        "def neighbour(rank, size):",
        "STEP = 1",
        "def exchange_with_neighbour(x, group):",
    ]
    assert answer.source[1][:2] == ("00_start cell 2", 2) and not answer.notes


def test_magics_decorators_and_lines_that_begin_with_percent_are_read(tmp_path):
    source = (
        "%matplotlib inline\nimport functools\n!ls\n@functools.cache\ndef deco(x):\n"
        "    return (x\n        % 2)\ndef exchange_with_neighbour(x, group): return deco(x)"
    )
    answer = found(tmp_path, cell(source, NAME))
    texts = [text for _, _, text in answer.source]
    assert texts[0] == "import functools" and texts[2].startswith("def exchange")
    assert texts[1] == "@functools.cache\ndef deco(x):\n    return (x\n        % 2)"
    assert [line for _, line, _ in answer.source] == [2, 4, 8]


@pytest.mark.parametrize(
    ("cells", "problem", "words"),
    [
        ([], "no-answer", "the cell with the id 'exchange_with_neighbour' is gone"),
        ([cell(GOOD, NAME, "markdown")], "no-answer", "is no code cell any more"),
        (
            [cell(GOOD.replace("exchange_with", "swap_with"), NAME)],
            "no-answer",
            "defines swap_with_neighbour, and not exchange_with_neighbour",
        ),
        ([cell("", NAME)], "no-answer", "defines nothing"),
        ([cell("def f(:", NAME)], "syntax-error", "cell 2 line 1"),
        ([cell("%%bash\nls", NAME)], "no-answer", "defines nothing"),
    ],
)
def test_a_damaged_answer_is_refused_with_a_reason(tmp_path, cells, problem, words):
    answer = found(tmp_path, *cells)
    assert answer.problem == problem and words in answer.message and not answer.source


def test_a_copied_and_a_split_cell_are_read_in_order_and_named(tmp_path):
    copied = found(tmp_path, cell(GOOD, NAME), cell(GOOD + "# mine", NAME))
    assert "2 cells carry the id 'exchange_with_neighbour'" in copied.notes[0]
    assert len(copied.source) == 3 and not copied.problem
    split = found(tmp_path, cell("left = 1", NAME), cell(GOOD, NAME))
    assert not split.problem and len(split.source) == 3


def test_an_answer_in_another_cell_is_found_by_its_name(tmp_path):
    answer = found(tmp_path, cell("", NAME), cell("1"), cell(GOOD))
    assert answer.notes == [f"{NAME} was found in cell 4, not in the cell that carries its id"]
    assert "import torch" in answer.source[0][2]
