"""How every check runs: real ranks at several world sizes, judged one subcheck after the other.

A check never raises and writes nothing to stderr. What the launcher says about a run that failed
becomes the message of the subcheck; trouble of the machine becomes "could not grade", which is
neither right nor wrong.
"""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from ..launch import errors
from ..launch.errors import RankFailure
from ..progress import note  # the package's own name `progress` is a function
from . import verdicts
from .probe import Probe, unplain
from .report import FAILED, NOT_RUN, PASSED, UNGRADED, Report, Result

LIMIT = 20.0  # seconds for all runs of one check together
LEAST = 0.25  # share of the limit that a run has even when the others have used it up


class Wrong(Exception):
    """Raised by a subcheck: a verdict code, a message (rank, step, expected, got); `hint` if it has
    its own.
    """

    def __init__(self, verdict: str, message: str, hint: str = ""):
        super().__init__(message)
        self.verdict, self.message, self.hint = verdict, message, hint


class NotGradable(Exception):
    """The machine is in the way: no process, no disk, no port."""


@dataclass(frozen=True)
class Subcheck:
    """`test(bench)` returns, or raises `Wrong`. With `gate`, the task earns nothing unless it
    passes.
    """

    name: str
    test: Callable[[Bench], None]
    points: float = 1
    gate: bool = False


@dataclass(frozen=True)
class Task:
    """What is graded: its number, the function's name, the exercise, the subchecks in order.

    `exercise` is the exercise notebook's name, or "lecture 00" for a task inside a lecture.
    `forbid` lists dotted names that raise inside the check; `hints` maps verdict codes to hints.
    """

    number: str
    name: str
    exercise: str
    subchecks: tuple[Subcheck, ...]
    forbid: tuple[str, ...] = ()
    hints: dict[str, str] = field(default_factory=dict)

    @property
    def max_points(self) -> float:
        return sum(s.points for s in self.subchecks)

    @property
    def in_lecture(self) -> bool:
        """Whether the task is part of a lecture, and so of no notebook that is graded."""
        return self.exercise.startswith("lecture ")


@dataclass(frozen=True)
class Outcome:
    """What the ranks gave back (plain tensors, by rank) and what the recorder saw."""

    values: list
    trace: object

    def bytes_sent(self) -> list[int]:
        return [self.trace.bytes_sent(rank) for rank in range(self.trace.world_size)]


class Bench:
    """Runs the learner's function for the subchecks of one check; equal runs are made once."""

    def __init__(self, task: Task, fn, seed: int, limit: float = LIMIT):
        self.task, self.seed, self.limit, self.spent = task, seed, limit, 0.0
        self.load, self.payload = pickle.loads, b""
        self.last_run, self._done = None, {}
        self.notes: list[str] = []  # what the Report should say besides the verdicts
        if hasattr(fn, "as_payload"):  # a submission: source text that only ranks execute
            self.load, self.payload = fn.as_payload()
        else:
            self.payload = _pickled(fn)

    def generator(self, *key: int) -> torch.Generator:
        """A stream of random numbers of its own for each key, such as (world size, rank)."""
        seed = random.Random(repr((self.seed, key))).getrandbits(62)
        return torch.Generator().manual_seed(seed)

    def run(self, world_size: int, driver: Callable, args: list[tuple], record="calls") -> Outcome:
        """`driver(fn, group, *args[rank])` in every rank. Raises what `run_ranks` raises, or
        NotGradable.
        """
        key = (world_size, driver.__qualname__, record)
        if key not in self._done:
            try:
                self._done[key] = self._run(world_size, driver, args, record)
            except RankFailure as failure:
                failure.world_size = world_size
                self._done[key] = failure
        if isinstance(self._done[key], RankFailure):
            raise self._done[key]
        return self._done[key]

    def _run(self, world_size, driver, args, record) -> Outcome:
        from .. import run_ranks

        probe = Probe(
            self.load, self.payload, driver, [pickle.dumps(a) for a in args], self.task.forbid
        )
        left, begin = self.limit - self.spent, time.monotonic()
        try:
            with _quiet():
                run = run_ranks(
                    probe, world_size, timeout=max(LEAST * self.limit, left), record=record
                )
            values = [unplain(result) for result in run.results]
        except RankFailure:
            raise
        except Exception as trouble:
            raise NotGradable(f"{type(trouble).__name__}: {trouble}") from trouble
        finally:
            self.spent += time.monotonic() - begin
        if len(values) != world_size:
            raise NotGradable(f"{len(values)} of {world_size} ranks gave a result")
        self.last_run = run
        return Outcome(values, run.trace)


@contextlib.contextmanager
def _quiet():
    """No prints of the ranks (they would come once per run) and no picture before the report's
    own.
    """
    shown, errors.on_failure[:] = list(errors.on_failure), []
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        errors.on_failure[:] = shown


TASKS: dict[str, Task] = {}  # by the name of the learner's function, in the order of the course


def checker(task: Task):
    """Make `check_<name>(fn, seed=None)` of a function that has only a docstring, and register the
    task.
    """

    def decorate(stub):
        @functools.wraps(stub)
        def check(fn, seed: int | None = None) -> Report:
            report = judge(task, fn, seed)
            note(task.name, report.points)
            report.show()
            return report

        TASKS[task.name] = task
        return check

    return decorate


def judge(task: Task, fn, seed: int | None = None, limit: float = LIMIT) -> Report:
    """Run the subchecks of `task` on `fn` and return the Report. Never raises; shows and notes
    nothing.

    seed: None draws fresh inputs at every call; a number repeats them. limit: seconds for all runs.
    """
    seed = random.SystemRandom().getrandbits(31) if seed is None else seed
    report = Report(task.number, task.name, [])
    try:
        bench = Bench(task, fn, seed, limit)
    except Wrong as wrong:
        report.results = [_result(task, sub, NOT_RUN) for sub in task.subchecks]
        report.results[0] = _result(task, task.subchecks[0], FAILED, wrong)
    else:
        stop = False
        for sub in task.subchecks:
            result, stop = (
                (_result(task, sub, NOT_RUN), True) if stop else _judge(task, sub, bench, report)
            )
            if result.verdict in {r.verdict for r in report.results if r.message}:
                result = replace(
                    result, message=result.message.partition("\n")[0]
                )  # told in full above
            report.results.append(result)
        report.run = bench.last_run
        report.notes += bench.notes
    return report


def _judge(task: Task, sub: Subcheck, bench: Bench, report: Report) -> tuple[Result, bool]:
    """The result of one subcheck, and whether the ones after it make no sense any more."""
    try:
        sub.test(bench)
        return _result(task, sub, PASSED), False
    except Wrong as wrong:
        return _result(task, sub, FAILED, wrong), False
    except RankFailure as failure:
        report.graph = report.graph or failure.graph
        wrong = Wrong(*verdicts.of(failure))
        return _result(task, sub, FAILED, wrong), wrong.verdict in verdicts.FINAL
    except (
        Exception
    ) as trouble:  # NotGradable, or a fault of the check itself: no evidence, no points
        text = (
            str(trouble)
            if isinstance(trouble, NotGradable)
            else f"the check itself failed: {trouble!r}"
        )
        return _result(task, sub, UNGRADED, Wrong("could-not-grade", text)), True


def _result(task: Task, sub: Subcheck, status: str, wrong: Wrong | None = None) -> Result:
    if wrong is None:
        return Result(sub.name, status, sub.points, sub.gate)
    hint = wrong.hint or task.hints.get(wrong.verdict) or verdicts.HINTS.get(wrong.verdict, "")
    return Result(sub.name, status, sub.points, sub.gate, wrong.verdict, wrong.message, hint)


def _pickled(fn) -> bytes:
    """The function as bytes. Raises Wrong when it is no function or cannot travel to a rank."""
    from ..launch.pickling import dumps

    if not callable(fn):
        raise Wrong("no-function", f"expected a function, got {type(fn).__name__}")
    try:
        return dumps(fn)
    except Exception as trouble:
        raise Wrong("cannot-travel", f"{type(trouble).__name__}: {trouble}") from None
