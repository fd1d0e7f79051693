"""Exercise 09, task 9.4: the shortest makespan under a memory cap."""

from __future__ import annotations

from ..schedule import IllegalSchedule, one_f_one_b, time_schedule, validate, zb_h1
from ..schedule.ops import linear
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .schedule_runs import BUILDERS, HINTS, ask, read
from .verdicts import hints_of
from .zero_bubble_h1 import REAL_TIMES

CASES = {"cap p": (4, 8, 4), "cap p + 1": (4, 8, 5), "cap 2p - 1": (4, 12, 7),
         "6 ranks, cap p + 2": (6, 12, 8)}


def par(p: int, m: int, cap: int) -> float:
    """Seconds of the best schedule known: a cap of p costs p - 1 times T_I - T_W, each more one
    less; with 2p - 1 the last rank computes from its first input to the end.
    """
    F, I, W = (REAL_TIMES[kind] for kind in "FIW")  # noqa: E741
    return m * (F + I + W) + (p - 1) * F + (2 * p - 1 - cap) * (I - W)


def _schedules(bench: Bench) -> dict:
    """{case: the schedule}. Wrong unless each is legal and keeps to the cap."""
    cases = tuple(CASES.values())
    found = {}
    for case, got in zip(cases, bench.run(1, ask, [(cases,)]).values[0]):
        p, m, cap = case
        where = f"p = {p}, m = {m}, cap = {cap}"
        found[case] = read(where, got, linear(p), m)
        try:
            validate(found[case], num_microbatches=m, memory_cap=cap)
        except IllegalSchedule as error:
            raise Wrong("over-the-cap", f"{where}: {error}") from None
    return found


def _at_most(case: str, name: str, seconds, verdict: str, strictly: bool = False):
    """A subcheck: the makespan is at most `seconds(p, m, cap)`, or below it."""

    def test(bench: Bench) -> None:
        p, m, cap = CASES[case]
        got = time_schedule(_schedules(bench)[CASES[case]], REAL_TIMES, barrier=True).makespan
        limit = seconds(p, m, cap)
        if got > limit + 1e-6 or strictly and got > limit - 1e-6:
            below = "less than" if strictly else "at most"
            raise Wrong(verdict, f"p = {p}, m = {m}, cap = {cap}: expected {below} {limit:g} s, "
                                 f"{name}, got {got:g} s")

    return test


def _of(builder):
    return lambda p, m, cap: time_schedule(builder(p, m), REAL_TIMES, barrier=True).makespan


def _legal(bench: Bench) -> None:
    _schedules(bench)


BEAT = Task(
    "9.4",
    "beat",
    "09_zero_bubble",
    (
        Subcheck("legal, and within the cap", _legal, points=0, gate=True),
        Subcheck("cap p: faster than 1F1B",
                 _at_most("cap p", "the time of 1F1B", _of(one_f_one_b), "slower-than-1f1b", True)),
        Subcheck("cap p: par", _at_most("cap p", "par", par, "above-par-tight")),
        Subcheck("cap p + 1: faster than ZB-H1",
                 _at_most("cap p + 1", "the time of ZB-H1", _of(zb_h1), "slower-than-zb-h1", True)),
        Subcheck("cap p + 1: par", _at_most("cap p + 1", "par", par, "above-par")),
        Subcheck("cap 2p - 1: par", _at_most("cap 2p - 1", "par", par, "above-par-loose")),
        Subcheck("6 ranks, cap p + 2: par",
                 _at_most("6 ranks, cap p + 2", "par", par, "above-par-large")),
    ),
    forbid=BUILDERS,
    hints=HINTS | hints_of("""
        forbidden: Build the lists yourself: Op(stage, kind, mb).
        over-the-cap: A micro-batch is held from its F to its W. Count F minus W along a rank's
            list: it never passes the cap. A W that is run earlier makes room.
        slower-than-1f1b: Take the backwards apart: 1F1B is a schedule of whole backwards.
        above-par-tight: With a cap of p, ZB-H1 is at par: task 9.3.
        slower-than-zb-h1: One micro-batch more may be held than in ZB-H1. Where does it help? One
            more forward in the warm-up lets the first ranks work while the first I comes back.
        above-par: One more forward in the warm-up, on every rank but the last, which does not wait
            for anything. What the cap leaves is for pending W.
        above-par-loose: With a cap of 2p - 1 this is ZB-H2: min(2 (p - r) - 1, m) forwards first,
            and 2r pending W.
        above-par-large: Between ZB-H1 and ZB-H2 rank r takes min(cap - p, p - 1 - r) forwards more
            than ZB-H1's p - r; the rest of the cap is for pending W.
    """),
)


@checker(BEAT)
def check_beat(fn, seed=None):
    """Points for `fn(p, m, cap)`: a schedule in halves within the cap; by makespan, against par."""
