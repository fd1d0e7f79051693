"""The grader finds an answer and what it needs in any notebook, and says why where it cannot."""

from pathlib import Path

import nbformat
import pytest

from course_lib.grade import main
from course_lib.grade_notebook import Unreadable, exercise_of, find_answer, read_notebook
from tests.test_grade import GOOD, NAME, cell, notebook

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = {path.stem for path in (ROOT / "exercises").glob("*.ipynb")}


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


def test_a_lecture_is_refused_and_its_exercise_is_named(capsys):
    assert main([str(ROOT / "notebooks" / "00_start.ipynb")]) == 2
    said = capsys.readouterr().out
    assert "is lecture 00, and a lecture is not graded" in said
    assert "exercises/00_start.ipynb" in said and "work/00_start.ipynb" in said
    assert "of 10 points" not in said


def test_every_lecture_names_its_own_exercise_wherever_it_is_copied():
    for exercise in EXERCISES:
        path = ROOT / "notebooks" / f"{exercise}.ipynb"
        lecture = read_notebook(path)
        for copied in (path, Path("my_copy.ipynb")):
            with pytest.raises(Unreadable, match=f"exercises/{exercise}.ipynb"):
                exercise_of(lecture, copied, EXERCISES)


def test_an_exercise_is_known_by_its_metadata_or_its_file_name(tmp_path):
    path = ROOT / "exercises" / "00_start.ipynb"
    assert exercise_of(read_notebook(path), Path("renamed.ipynb"), EXERCISES) == "00_start"
    bare = notebook(tmp_path, name="00_start_anna.ipynb")
    assert exercise_of(read_notebook(bare), bare, EXERCISES) == "00_start"
    with pytest.raises(Unreadable, match="is no exercise of this course"):
        exercise_of(read_notebook(bare), Path("renamed.ipynb"), EXERCISES)
