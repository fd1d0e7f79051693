"""Every known-wrong answer gets its verdict, its hint and no more than its points; every right one
passes.
"""

import re
import threading
from pathlib import Path

import pytest

from course_lib import checks
from course_lib.checks import TASKS
from course_lib.checks.machinery import Subcheck, Task, judge
from course_lib.checks.probe import Forbidden, Other, forbidden, plain, unplain
from course_lib.checks.report import FAILED, NOT_RUN, PASSED, UNGRADED, NotPassed, Report, Result
from course_lib.grade_submission import Submission

FOLDER = Path(__file__).parent / "wrong"
ANSWERS = sorted(path for task in TASKS for path in (FOLDER / task).glob("*.py"))


def answer(path):
    """(the answer as the grader would hold it, what its head says must come out)."""
    text = path.read_text()
    said = dict(re.findall(r"^# (verdict|points|hint|note): (.*)$", text, re.MULTILINE))
    return Submission(path.parent.name, ((path.name, 1, text),)), said


def name(path):
    return f"{path.parent.name}-{path.stem}"


def in_test(exercise):
    """The wrong answer to one of the exercise's tasks that `make test` runs, the first that does
    not say "# runs in: soak". All others run in `make soak`; solutions also run as notebooks.
    """
    wrong = [path for path in ANSWERS if TASKS[path.parent.name].exercise == exercise
             and not path.stem.startswith("right_")]
    return min(wrong, key=lambda path: "# runs in: soak\n" in path.read_text())


FAST = {in_test(exercise) for exercise in {task.exercise for task in TASKS.values()}}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path in FAST else pytest.mark.soak, id=name(path))
        for path in ANSWERS
    ],
)
def test_an_answer_gets_what_its_head_says(path):
    fn, said = answer(path)
    report = judge(TASKS[path.parent.name], fn)
    print(report)
    assert (report.verdict, report.points) == (said["verdict"], int(said["points"]))
    assert report.passed == (said["verdict"] == "passed") == path.stem.startswith("right_")
    assert said.get("hint", "") in report.hint
    assert said.get("note", "") in " ".join(report.notes)


# -- the machinery --------------------


def one_subcheck(test, forbid=()):
    return Task("9.9", "anything", "none", (Subcheck("it works", test),), forbid=forbid)


def runs(bench):
    bench.run(2, lambda fn, group: fn(group), [(), ()])  # local, so no rank imports this file


def test_what_a_rank_prints_stays_out_of_a_check(capfd):
    report = judge(one_subcheck(runs), lambda group: print("hello from a rank"))
    assert report.passed and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("fn", [3, None, open(__file__)])
def test_what_is_no_function_is_reported(fn):
    report = judge(one_subcheck(runs), fn)
    assert (report.outcome, report.verdict, report.points) == ("failed", "no-function", 0)


def test_what_cannot_travel_is_reported():
    lock = threading.Lock()
    report = judge(one_subcheck(runs), lambda group: lock.locked())
    assert (report.verdict, report.points) == ("cannot-travel", 0)


def test_trouble_of_the_machine_is_not_wrong(monkeypatch):
    def no_room(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("course_lib.run_ranks", no_room)
    report = judge(one_subcheck(runs), lambda group: None)
    assert (report.outcome, report.points, report.passed) == ("could not grade", 0, False)
    assert "No space left on device" in str(report)


def test_a_fault_of_the_check_itself_is_not_wrong():
    def broken(bench):
        raise KeyError("x")

    report = judge(one_subcheck(broken), lambda group: None)
    assert (report.outcome, report.points) == ("could not grade", 0)


def test_a_check_shares_one_limit_between_its_runs():
    def endless(group):
        while True:
            pass

    report = judge(one_subcheck(runs), endless, limit=1.5)
    assert (report.verdict, report.points) == ("time-limit", 0)
    assert "test_checks.py line" in report.messages[0]


@pytest.mark.soak
def test_the_same_seed_draws_the_same_inputs_and_another_does_not():
    texts = []
    for seed in (1, 1, 2):
        fn, _ = answer(FOLDER / "exchange_with_neighbour" / "wrong_direction.py")
        texts.append(str(judge(TASKS["exchange_with_neighbour"], fn, seed=seed)))
    assert texts[0] == texts[1] != texts[2]


def test_a_forbidden_function_raises_under_every_name_and_comes_back():
    from course_lib import collectives

    original = collectives.ring_all_reduce
    with forbidden(("course_lib.collectives.ring_all_reduce",)):
        with pytest.raises(Forbidden, match="ring_all_reduce is not allowed"):
            collectives.ring_all_reduce(None, None)
    assert collectives.ring_all_reduce is original


def test_a_forbidden_function_imported_in_a_cell_is_refused_too():
    from course_lib.collectives import all_reduce

    report = judge(
        one_subcheck(runs, ("course_lib.collectives.all_reduce",)), lambda g: all_reduce(None, g)
    )
    assert report.verdict == "forbidden"


class EqualsAll:
    def __eq__(self, other):
        return True


def test_only_plain_data_leaves_a_rank():
    import torch

    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return torch.zeros(3)

    sent = [
        torch.tensor([1.5, 2]),
        torch.zeros(0, 3, dtype=torch.bfloat16),
        3,
        None,
        "x",
        EqualsAll(),
    ]
    back = unplain(plain(sent))
    assert (
        torch.equal(back[0], sent[0])
        and back[1].shape == (0, 3)
        and back[1].dtype == torch.bfloat16
    )
    assert back[2:5] == [3, None, "x"] and isinstance(back[5], Other) and back[5] != 3
    assert torch.equal(unplain(plain(torch.ones(3).as_subclass(Mine))), torch.ones(3))
    for bad in (EqualsAll(), ("tensor", "float32", (1,), EqualsAll()), ("value", EqualsAll()), []):
        with pytest.raises(ValueError, match="plain data"):
            unplain(bad)


# -- the report --------------------


def report_of(*states, gate=0):
    return Report(
        "1.1",
        "name",
        [
            Result(
                f"part {i}",
                state,
                1,
                gate=i == gate,
                verdict="" if state == PASSED else f"code-{i}",
                hint=f"hint {i}",
            )
            for i, state in enumerate(states)
        ],
    )


@pytest.mark.parametrize(
    ("states", "points", "outcome"),
    [
        ((PASSED, PASSED, FAILED, PASSED), 3, "failed"),
        ((FAILED, PASSED, PASSED, PASSED), 0, "failed"),
        ((NOT_RUN, PASSED), 0, "failed"),
        ((PASSED, NOT_RUN), 1, "failed"),
        ((PASSED, UNGRADED), 0, "could not grade"),
        ((PASSED, PASSED), 2, "passed"),
        ((), 0, "failed"),
    ],
)
def test_points_are_those_of_the_parts_and_no_evidence_is_no_pass(states, points, outcome):
    report = report_of(*states)
    assert (report.points, report.outcome, report.passed) == (points, outcome, outcome == "passed")


def test_the_verdict_is_that_of_the_gate():
    assert report_of(PASSED, FAILED, FAILED).verdict == "code-1"
    assert report_of(FAILED, FAILED, FAILED, gate=2).verdict == "code-2"
    assert report_of(PASSED, PASSED).verdict == "passed"


def test_require_raises_with_the_report_as_text():
    with pytest.raises(NotPassed, match="Task 1.1  name  1 of 2 points"):
        report_of(PASSED, FAILED).require()
    assert report_of(PASSED).require().points == 1


def test_a_report_survives_its_own_plain_form():
    report = report_of(PASSED, FAILED)
    again = Report.from_dict(report.as_dict())
    assert str(again) == str(report) and again.points == 1
    assert "&lt;" in Report("1", "<b>", [Result("x", FAILED, message="a < b")])._repr_html_()


def test_thirty_failures_are_listed_once_each():
    report = report_of(*[FAILED] * 30)
    assert str(report).count("part ") == 30 and all(
        f"part {i}\n" in str(report) + "\n" for i in range(30)
    )


def test_check_setup_is_stable_and_says_what_is_missing(monkeypatch):
    first, again = checks.check_setup(), checks.check_setup()
    assert first.passed and str(first) == str(again) and first.require() is first
    monkeypatch.setattr("course_lib.checks.setup.version", lambda name: "2.5.1")
    old = checks.check_setup()
    assert not old.passed and "torch 2.5.1" in str(old) and "pip install" in str(old)
