"""Exercises are made from solutions; unsolved they score nothing, solved everything; copies are
never overwritten.
"""

import sys
from pathlib import Path

import nbformat
import pytest

from course_lib.checks import TASKS
from course_lib.checks.machinery import judge
from course_lib.grade import grade
from course_lib.grade_process import CheckingProcess
from course_lib.grade_submission import Submission
from tools import make_exercises, make_work

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))
NAMES = [path.stem for path in SOLUTIONS]
PICTURES = ("show(", "explore_pipeline(")  # how the line begins that draws the learner's own run


def read(folder, name):
    return nbformat.read(ROOT / folder / f"{name}.ipynb", as_version=4)


def graded(notebook, kind):
    cells = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get(kind)]
    return {cell.metadata["nbgrader"]["grade_id"]: cell for cell in cells}


@pytest.mark.parametrize("name", NAMES)
def test_exercises_are_what_their_solutions_make(name):
    made = make_exercises.text_of(ROOT / "solutions" / f"{name}.ipynb")
    assert (ROOT / "exercises" / f"{name}.ipynb").read_text() == made, "run tools/make_exercises.py"


def test_every_exercise_has_a_solution_and_every_task_an_exercise():
    assert NAMES == sorted(path.stem for path in (ROOT / "exercises").glob("*.ipynb"))
    assert {task.exercise for task in TASKS.values() if not task.in_lecture} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_exercise_holds_no_solution(name):
    text = (ROOT / "exercises" / f"{name}.ipynb").read_text()
    notebook = read("exercises", name)
    assert "SOLUTION" not in text and not any(c.get("outputs") for c in notebook.cells)
    for task, cell in graded(notebook, "solution").items():
        assert f'raise NotImplementedError("Task {TASKS[task].number}")' in cell.source
        assert '"""' in cell.source and len(cell.source.splitlines()) <= 25


@pytest.mark.parametrize("name", NAMES)
def test_the_cells_of_a_task_are_all_there(name):
    solution = read("solutions", name)
    tasks = {task.name: task for task in TASKS.values() if task.exercise == name}
    answers, checks = graded(solution, "solution"), graded(solution, "grade")
    assert set(answers) == set(tasks) and set(checks) == {f"check_{task}" for task in tasks}
    for task in tasks.values():
        cell = checks[f"check_{task.name}"]
        assert cell.metadata.nbgrader.points == task.max_points
        assert cell.source == f"check_{task.name}({task.name}).points"
        assert cell.outputs[-1].data["text/plain"] == str(task.max_points)
    assert solution.metadata.lockstep.exercise == name


@pytest.mark.parametrize("name", NAMES)
def test_the_parts_of_a_task_come_in_their_order(name):
    cells = read("exercises", name).cells
    heads = [i for i, c in enumerate(cells) if c.source.startswith("## Task ")]
    assert len(heads) == sum(task.exercise == name for task in TASKS.values())
    for start in heads:
        part = cells[start : start + 12]
        stub = next(i for i, c in enumerate(part) if "NotImplementedError" in c.source)
        check = next(i for i, c in enumerate(part) if c.metadata.get("nbgrader", {}).get("grade"))
        picture = next(i for i, c in enumerate(part)
                       if any(line.startswith(PICTURES) for line in c.source.splitlines()))
        assert "Difficulty" in part[0].source and "minutes" in part[0].source
        assert "**Before:**" in part[1].source and "**After:**" in part[1].source
        assert part[2].cell_type == "code" and 2 < stub < picture < check
        assert part[check + 1].source.count("<details>") <= 3


@pytest.fixture(scope="module")
def checking():
    """One checking process for all exercises: it takes seconds to start."""
    with CheckingProcess() as process:
        yield process


@pytest.mark.parametrize("name", NAMES)
def test_unsolved_scores_nothing(checking, name):
    unsolved = grade(ROOT / f"exercises/{name}.ipynb", seed=3, checking=checking)
    assert (unsolved.points, unsolved.status) == (0, 1)
    assert {report.verdict for report in unsolved.reports} == {"not-implemented"}


def first_in_test(names, *fast):
    """The names as parameters; all but `fast` run in `make soak`."""
    return [pytest.param(n, marks=() if n in fast else pytest.mark.soak) for n in names]


@pytest.mark.parametrize("name", first_in_test(NAMES, "00_start"))
def test_solved_scores_everything(checking, name):
    solved = grade(ROOT / f"solutions/{name}.ipynb", seed=3, checking=checking)
    assert (solved.points, solved.status) == (solved.max_points, 0), [
        str(r) for r in solved.reports
    ]


@pytest.mark.parametrize("task", first_in_test(TASKS, "exchange_with_neighbour", "all_reduce"))
def test_a_function_that_returns_its_input_scores_nothing(task):
    first = f"def {task}(first, *others):\n    return first"
    report = judge(TASKS[task], Submission(task, (("first", 1, first),)))
    assert report.points == 0 and not report.passed


def test_a_copy_in_work_is_never_touched(tmp_path):
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises" / "00_start.ipynb").write_text("new")
    assert make_work.copy("00_start", tmp_path) == "copied"
    (tmp_path / "work" / "00_start.ipynb").write_text("my answers")
    assert make_work.copy("00_start", tmp_path) == "kept"
    assert (tmp_path / "work" / "00_start.ipynb").read_text() == "my answers"


def test_make_work_refuses_an_unknown_name(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make_work.py", "99_nothing"])
    with pytest.raises(SystemExit, match="no exercise '99_nothing'"):
        make_work.main()


def cell(source, **metadata):
    return nbformat.v4.new_code_cell(source, metadata=metadata)


ANSWER = {"solution": True, "grade_id": "data_parallel_step"}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (cell("### BEGIN SOLUTION\n1\n### END SOLUTION"), "no nbgrader metadata"),
        (cell("x = 1", nbgrader=ANSWER), "0 solutions"),
        (cell("### BEGIN SOLUTION\n1\n### END SOLUTION\n" * 2, nbgrader=ANSWER), "2 solutions"),
        (cell("1", nbgrader={**ANSWER, "grade_id": "nothing"}), "no check for 'nothing'"),
    ],
)
def test_a_bad_solution_cell_is_refused(bad, words):
    with pytest.raises(make_exercises.BadSolution, match=words):
        make_exercises.exercise(nbformat.v4.new_notebook(cells=[bad]))
