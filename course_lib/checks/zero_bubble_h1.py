"""Exercise 09, task 9.3: the order of ZB-H1."""

from __future__ import annotations

from ..schedule import Schedule, zb_h1
from ..schedule.memory import peak_in_flight
from .machinery import Subcheck, Task, Wrong, checker
from .schedule_runs import (
    BUILDERS,
    FEW,
    FIRST,
    HINTS,
    OTHERS,
    any_size,
    ask,
    ask_few,
    ask_others,
    each,
    expect_kinds,
    expect_makespan,
    first_ops,
    special,
)
from .verdicts import hints_of

REAL_TIMES = {"F": 10.0, "I": 12.0, "W": 6.0}
halves = expect_kinds("FIW", "whole-backwards", "expected backwards in halves, I and W")


def expect_at_most_p(where: str, schedule: Schedule, case) -> None:
    """No rank holds more than p micro-batches, each until its W."""
    p, m = case
    got = [round(peak_in_flight(schedule, rank)) for rank in range(p)]
    if max(got) <= min(p, m):
        return
    verdict = "too-many-in-flight"
    kinds = ["".join(op.kind for op in ops) for ops in schedule]
    if all("I" not in row[row.find("W"):] for row in kinds):
        verdict = "w-at-the-end"
    elif min(got) >= min(2 * p - 1, m):
        verdict = "zb-h2-again"
    raise Wrong(verdict, f"{where}: expected every rank to hold at most {min(p, m)} micro-batches, "
                         f"got {got}; {first_ops(schedule)}")


def expect_deferred(where: str, schedule: Schedule, case) -> None:
    """Some W comes later than right after its I, where there are several ranks."""
    for ops in schedule:
        after = {op: ops[at + 1] if at + 1 < len(ops) else op for at, op in enumerate(ops)}
        if any(op.kind == "I" and after[op] != op._replace(kind="W") for op in ops):
            return
    if case[0] > 1 and case[1] > 1:
        raise Wrong("not-deferred", f"{where}: expected a W to come later than right after its I; "
                                    f"{first_ops(schedule, len(schedule) - 1)}")


def fast(times=None):
    return expect_makespan(zb_h1, "too-slow", times or {"F": 1.0, "I": 1.0, "W": 1.0})


ZB_H1 = Task(
    "9.3",
    "zb_h1_order",
    "09_zero_bubble",
    (
        Subcheck("4 ranks, 8 micro-batches: legal, in halves, at most p held, as fast as ZB-H1",
                 each(ask, (FIRST,), halves, expect_at_most_p, expect_deferred, fast()), points=2,
                 gate=True),
        Subcheck("T_F = 10, T_I = 12, T_W = 6", each(ask, (FIRST,), fast(REAL_TIMES))),
        Subcheck("any number of ranks and micro-batches",
                 any_size(ask_others, OTHERS, halves, expect_at_most_p, fast()), points=2),
        Subcheck("fewer micro-batches than ranks",
                 special("few-micro-batches", ask_few, FEW, halves, expect_at_most_p, fast())),
    ),
    forbid=BUILDERS,
    hints=HINTS | hints_of("""
        forbidden: Build the lists yourself: Op(stage, kind, mb).
        whole-backwards: A B computes both halves. Take it apart: I, and later W.
        op-missing: Every micro-batch has an F, an I and a W. Which W are still pending at the end?
        illegal-order: Read the sentence above: which op waits for which? A W comes after the I of
            the same micro-batch, and nothing waits for a W.
        not-deferred: Each W follows its own I at once. The next rank has its gradient earlier, and
            the gaps at the end stay. Put off W: rank r has r of them pending.
        w-at-the-end: All W at the end: every micro-batch is held until then. Rank r puts off only
            r; from then on each I is followed by the oldest pending W.
        zb-h2-again: This warm-up is ZB-H2's: it holds 2p - 1 micro-batches. Here at most p are
            held: the warm-up of 1F1B.
        too-many-in-flight: Forwards and pending W together hold more than p micro-batches: p - r
            before their I, r before their W.
        too-slow: The order is legal, and ranks wait. Warm-up as in 1F1B; then F, I, and, once r
            I have run, the oldest pending W; the pending W at the end.
    """),
)


@checker(ZB_H1)
def check_zb_h1_order(fn, seed=None):
    """Points for `fn(p, m)`: ZB-H1, one list of Op per rank."""
