"""nbgrader and `python -m course_lib.grade` give the same points for the same files.

Needs nbgrader, the optional extra `instructor`; without it nothing here runs, and a line says so.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_lib.checks import TASKS
from course_lib.grade import grade
from course_lib.grade_process import CheckingProcess
from tools import make_source

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        importlib.util.find_spec("nbgrader") is None,
        reason="NBGRADER IS NOT INSTALLED, nothing is known of it: pip install -e .[instructor]",
    ),
]
ROOT = Path(__file__).resolve().parent.parent
NAME = "00_start"
GOOD = """right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)"""
STEP = """optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    for p in model.parameters():
        all_reduce(p.grad, group)
    optimizer.step()"""
STUB = "raise NotImplementedError"
WARN = 'import sys, warnings\n\nwarnings.warn("from a cell")\nprint("also", file=sys.stderr)\n\n\n'
LOUD = 'import warnings\n    warnings.warn("from a rank")\n    '
PAIR = GOOD.replace("group.rank + 1) % group.size", "1 - group.rank)").replace(
    "(group.rank - 1) % group.size", "1 - group.rank"
)
# student: what stands before the first answer's def, its body, the second answer's body
SUBMISSIONS = {
    "stub": ("", "", ""),
    "half": ("", PAIR, STEP),
    "warning": (WARN, LOUD + GOOD, ""),
    "dead": ("import os\n\nstop = os._exit(1)\n\n\n", GOOD, ""),
}
POINTS = {  # of the two tasks
    "solution": (4, 6),
    "stub": (0, 0),
    "half": (1, 0),
    "warning": (4, 0),
    "dead": (0, 0),
}


def answered(notebook, before, *bodies):
    """A copy of the exercise with answers in the places of its stubs; "" leaves a stub."""
    book = nbformat.from_dict(notebook)
    stubs = [c for c in book.cells if c.metadata.get("nbgrader", {}).get("solution")]
    for cell, body in zip(stubs, bodies, strict=True):
        line = next(line for line in cell.source.splitlines() if STUB in line)
        cell.source = cell.source.replace(line, "    " + body) if body else cell.source
    stubs[0].source = before + stubs[0].source
    return book


def nbgrader(course, *arguments):
    env = {key: text for key, text in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])  # for alembic
    command = [sys.executable, "-m", "nbgrader", *arguments]
    return subprocess.run(command, cwd=course, capture_output=True, text=True, env=env)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A folder for nbgrader with an assignment, released and answered by five students."""
    folder = tmp_path_factory.mktemp("grading")
    assert set(make_source.make(folder, [NAME]).values()) == {"made"}
    made = nbgrader(folder, "generate_assignment", NAME)
    assert made.returncode == 0, made.stderr
    released = nbformat.read(folder / f"release/{NAME}/{NAME}.ipynb", as_version=4)
    books = {student: answered(released, *texts) for student, texts in SUBMISSIONS.items()}
    books["solution"] = nbformat.read(ROOT / "solutions" / f"{NAME}.ipynb", as_version=4)
    for student, book in books.items():
        file = submitted(folder, student)
        file.parent.mkdir(parents=True)
        nbformat.write(book, file)
    return folder


@pytest.fixture(scope="module")
def scores(course):
    """{student: points of the two tasks, or None where nbgrader could not grade}."""
    from nbgrader.api import Gradebook, MissingEntry

    said = nbgrader(course, "autograde", NAME)  # its exit status is 1: one kernel died
    print(said.stdout, said.stderr)
    found = {}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as book:
        for student in POINTS:
            try:
                cells = [f"check_{name}" for name, t in TASKS.items() if t.exercise == NAME]
                grades = [book.find_grade(cell, NAME, NAME, student) for cell in cells]
                found[student] = tuple(grade.auto_score for grade in grades)
            except MissingEntry:
                found[student] = None
    return found


def submitted(course, student):
    return course / "submitted" / student / NAME / f"{NAME}.ipynb"


def test_the_release_is_the_exercise_but_for_its_stubs(course):
    released = nbformat.read(course / f"release/{NAME}/{NAME}.ipynb", as_version=4)
    exercise = nbformat.read(ROOT / "exercises" / f"{NAME}.ipynb", as_version=4)
    pairs = list(zip(released.cells, exercise.cells, strict=True))
    for theirs, ours in pairs:
        a, b = (c.source.splitlines() for c in (theirs, ours))
        assert [line for line in a if STUB not in line] == [line for line in b if STUB not in line]
    assert sum(STUB in theirs.source for theirs, _ in pairs) == 2
    assert "SOLUTION" not in nbformat.writes(released) and "solutions" not in str(released.cells)


def test_grade_says_what_nbgrader_says(course, scores):
    with CheckingProcess() as checking:
        for student, points in POINTS.items():
            ours = grade(submitted(course, student), 4, checking=checking)
            assert tuple(r.points for r in ours.reports) == points, (student, str(ours.reports))
            if student == "dead":
                assert ours.reports[0].verdict == "died"
    assert {s: points for s, points in scores.items() if s != "dead"} == {
        s: points for s, points in POINTS.items() if s != "dead"
    }


def test_a_dead_kernel_earns_nothing_in_nbgrader(scores):
    assert scores["dead"] is None or not any(scores["dead"])


@pytest.mark.parametrize(
    ("student", "words"),
    [("solution", "Success! Your notebook passes all the tests."), ("half", "check_exchange_with")],
)
def test_validate_says_whether_points_are_missing(course, student, words):
    said = nbgrader(course, "validate", str(submitted(course, student)))
    assert words in said.stdout + said.stderr


def test_a_second_layout_touches_nothing(course):
    config = course / "nbgrader_config.py"
    before = config.read_bytes()
    assert set(make_source.make(course, [NAME]).values()) == {"kept"}
    assert config.read_bytes() == before
