"""The grader against answers of every kind: right, wrong, damaged and hostile. No evidence is no
pass.
"""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from course_lib import grade as command
from course_lib.grade import grade, main
from course_lib.grade_process import CheckingProcess, descendants
from course_lib.progress import read

ROOT = Path(__file__).resolve().parent.parent
NAME, OTHER = "exchange_with_neighbour", "data_parallel_step"
GOOD = """def exchange_with_neighbour(x, group):
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)
"""


@pytest.fixture(scope="module")
def checking():
    """One checking process for all tests: it takes seconds to start."""
    with CheckingProcess() as process:
        yield process


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_PROGRESS", str(tmp_path / "progress.json"))


def cell(source, name=None, kind="code"):
    metadata = {"nbgrader": {"grade_id": name, "solution": True}} if name else {}
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(source, metadata=metadata)


def notebook(tmp_path, *cells, name="00_start.ipynb"):
    """A submission of the given cells, after the imports that every exercise begins with."""
    book = nbformat.v4.new_notebook(cells=[cell("import torch"), *cells])
    path = tmp_path / name
    nbformat.write(book, path)
    return path


def report_on(checking, tmp_path, *cells, limit=20.0):
    """The report on the exchange task of a submission that has only that one."""
    path = notebook(tmp_path, *cells)
    return grade(path, 5, limit, checking).reports[0]


# -- the command ---------------------------------------------------------------------------------


def test_the_command_says_points_hints_and_status(tmp_path, capsys):
    path = notebook(tmp_path, cell(GOOD, NAME))
    assert main([str(path), "--seed", "7"]) == 1
    out = capsys.readouterr().out
    assert "Task 0.1  exchange_with_neighbour  4 of 4 points" in out
    assert "Task 0.2  data_parallel_step  0 of 6 points" in out
    assert "hint: The cell of this task holds no function" in out
    assert "Sum: 4 of 10 points" in out and "--seed 7" in out


def test_a_file_that_is_no_notebook_is_not_graded_and_the_others_are(tmp_path, capsys):
    broken, missing = tmp_path / "00_start_b.ipynb", tmp_path / "00_start_c.ipynb"
    broken.write_text('{"cells": [')
    other = notebook(tmp_path, cell("1"), name="my_thesis.ipynb")
    good = notebook(tmp_path, name="00_start_anna.ipynb")
    assert main([str(p) for p in (broken, missing, other, good)] + ["--json"]) == 2
    files = json.loads(capsys.readouterr().out)["files"]
    assert [f["status"] for f in files] == [2, 2, 2, 1]
    assert "cannot be read as a notebook" in files[0]["trouble"]
    assert files[2]["trouble"] == "my_thesis.ipynb is no exercise of this course"
    assert [t["verdict"] for t in files[3]["tasks"]] == ["no-answer"] * 2


def test_csv_and_html_hold_the_same(tmp_path, capsys):
    path = notebook(tmp_path, cell("x = = 1", NAME))
    assert main([str(path), "--csv"]) == 1
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(r["task"], r["points"], r["verdict"]) for r in rows] == [
        ("0.1", "0", "syntax-error"),
        ("0.2", "0", "no-answer"),
    ]
    assert main([str(path), "--html"]) == 1
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>") and "cell 2 line 1" in page and "<script" not in page


def test_the_class_report_counts_verdicts(tmp_path, capsys):
    paths = [
        notebook(tmp_path, cell(text, NAME), name=f"00_start_{i}.ipynb")
        for i, text in enumerate(("x = = 1", "x = = 2", ""))
    ]
    (tmp_path / "00_start_broken.ipynb").write_text("{")
    assert main([*map(str, paths), str(tmp_path / "00_start_broken.ipynb"), "--report"]) == 2
    lines = capsys.readouterr().out.splitlines()
    head = f"Task 0.1  {NAME}  0 of 3 passed, 0.0 of 4 points on average"
    assert lines[0] == head and lines[1].startswith("     2  syntax-error: Python cannot read")
    assert lines[2].startswith("     1  no-answer: ") and lines[4].startswith("     3  no-answer")
    assert lines[5].startswith("00_start_broken.ipynb: ")


def test_wrong_options_are_refused(tmp_path):
    for options in (["x.ipynb", "--limit", "0"], [], ["x.ipynb", "--json", "--csv"]):
        with pytest.raises(SystemExit) as stop:
            main(options)
        assert stop.value.code == 2


def test_points_are_noted_for_a_file_in_work_only(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "work").mkdir()
    grade(notebook(tmp_path), seed=1)
    assert read() == {}
    grade(notebook(tmp_path / "work"), seed=1)
    assert read() == {NAME: 0, OTHER: 0}


# -- answers that are graded ---------------------------------------------------------------------


@pytest.mark.soak
def test_reordered_cells_a_broken_one_and_tries_do_no_harm(checking, tmp_path):
    tries = cell(
        "run = exchange_with_neighbour(torch.ones(2), None)\nraise SystemExit\n"
        "import os\nos._exit(0)"
    )
    report = report_on(checking, tmp_path, tries, cell("this is no python"), cell(GOOD, NAME))
    assert report.passed, str(report)


def test_points_of_each_task_are_its_own(checking, tmp_path):
    half = GOOD.replace("(group.rank - 1) % group.size", "1 - group.rank").replace(
        "(group.rank + 1) % group.size", "1 - group.rank"
    )
    path = notebook(
        tmp_path, cell(half, NAME), cell("def data_parallel_step(*a): raise SystemExit", OTHER)
    )
    first, second = grade(path, 2, checking=checking).reports
    assert (first.verdict, first.points) == ("only-two-ranks", 1)
    assert (second.verdict, second.points) == ("exit", 0)
    assert "00_start cell 2 line 3: return group.exchange" in str(first)


HOSTILE = sorted((ROOT / "tests" / "wrong" / "hostile").glob("*.py"))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=() if "# runs in: test\n" in p.read_text() else pytest.mark.soak)
        for p in HOSTILE
    ],
    ids=lambda path: path.stem,
)
def test_a_hostile_answer_earns_nothing_by_it(checking, tmp_path, path):
    text = path.read_text()
    verdict = text.partition("# verdict: ")[2].partition("\n")[0]
    report = report_on(checking, tmp_path, cell(text, NAME))
    assert report.verdict in verdict.split(" or "), str(report)
    assert report.passed == (verdict == "passed") and (report.passed or report.points == 0)
    assert "line 4999" not in str(report)


def test_an_endless_loop_costs_its_own_task_only(checking, tmp_path):
    path = notebook(
        tmp_path,
        cell("def exchange_with_neighbour(x, group):\n    while True: pass", NAME),
        cell("def data_parallel_step(*all): return None", OTHER),
    )
    begin = time.monotonic()
    first, second = grade(path, 1, 4, checking).reports
    assert (first.verdict, first.points) == ("time-limit", 0)
    assert "cell 2 line 2" in str(first) and "4 s" in str(first)
    assert second.verdict == "no-step"
    assert time.monotonic() - begin < 60


@pytest.mark.soak
def test_grading_twice_with_a_seed_says_the_same(checking, tmp_path):
    path = notebook(tmp_path, cell("def exchange_with_neighbour(x, group): return x", NAME))
    texts = [command.as_text([grade(path, seed, checking=checking)], seed) for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.soak
def test_feedback_shows_no_solution(checking, tmp_path):
    path = notebook(tmp_path, cell("def exchange_with_neighbour(x, group): return x + 1", NAME))
    text = command.as_json([grade(path, 1, checking=checking)], 1)
    assert (
        "solutions" not in text
        and "torch.empty_like(x), left" not in text
        and "Traceback" not in text
    )


# -- trouble of the machine ----------------------------------------------------------------------


@pytest.mark.soak
def test_a_killed_checking_process_is_could_not_grade(tmp_path):
    source = [["cell", 1, "def exchange_with_neighbour(x, group):\n    while True: pass"]]
    from course_lib.checks import TASKS

    with CheckingProcess() as checking:
        assert checking._start() == ""
        pid = checking.process.pid
        killer = subprocess.Popen(
            [sys.executable, "-c", f"import os, time; time.sleep(1.5); os.kill({pid}, 9)"]
        )
        report = checking.grade(TASKS[NAME], source, 1, 10)
        killer.wait()
        assert (report.outcome, report.points) == ("could not grade", 0)
        assert "the checking process ended: exit code -9" in str(report)
        again = checking.grade(TASKS[NAME], [["cell", 1, "import torch\n" + GOOD]], 1, 20)
        assert again.passed, "the next task is graded by a new process"


def test_a_process_that_does_not_start_is_could_not_grade(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    result = grade(notebook(tmp_path, cell(GOOD, NAME)), seed=1)
    assert result.status == 2 and result.points == 0
    assert result.reports[0].outcome == "could not grade"


def test_replies_without_the_word_are_not_believed():
    checking = CheckingProcess()
    read, write = os.pipe()
    checking.results, checking.word = read, "right"
    os.write(
        write, b'{"word": "wrong", "report": 1}\nnonsense\n[]\n{"word": "right", "report": 2}\n'
    )
    assert checking._receive(1) == {"report": 2}
    assert checking._receive(0.05) == {"late": 0.05}
    os.close(write)
    os.close(read)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_everything_that_was_started_is_ended():
    checking = CheckingProcess()
    code = (
        "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', "
        "'import time; time.sleep(60)'], start_new_session=True); time.sleep(60)"
    )
    checking.process = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stdin=subprocess.PIPE
    )
    for _ in range(100):
        if left := descendants(checking.process.pid):
            break
        time.sleep(0.05)
    checking.end()
    for pid in left:
        for _ in range(100):
            try:
                os.kill(pid, 0)
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (ProcessLookupError, FileNotFoundError):
                break
            if state == "Z":
                break
            time.sleep(0.02)
        else:
            os.kill(pid, signal.SIGKILL)
            pytest.fail(f"process {pid} survived")
