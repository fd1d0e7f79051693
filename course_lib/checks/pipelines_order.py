"""Exercise 08, tasks 8.2 and 8.3: GPipe's and 1F1B's order, as lists of Op."""

from __future__ import annotations

from ..schedule import Schedule, gpipe, one_f_one_b
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

whole = expect_kinds("FB", "halves", "expected whole backwards, B")


def forwards_first(schedule: Schedule) -> bool:
    """Whether every rank runs all its forwards before its first backward."""
    return all("F" not in "".join(op.kind for op in ops).lstrip("F") for ops in schedule)


def expect_forwards_first(where: str, schedule: Schedule, case) -> None:
    if not forwards_first(schedule):
        rank = next(r for r, ops in enumerate(schedule)
                    if "F" in "".join(op.kind for op in ops).lstrip("F"))
        raise Wrong("backward-too-early", f"{where}: expected every rank to run all forwards before"
                                          f" its first backward; {first_ops(schedule, rank)}")


def expect_in_flight(where: str, schedule: Schedule, case) -> None:
    """Rank r holds at most min(p - r, m) micro-batches, as 1F1B does."""
    p, m = case
    want = [min(p - rank, m) for rank in range(p)]
    got = [round(peak_in_flight(schedule, rank)) for rank in range(p)]
    if all(g <= w for g, w in zip(got, want)):
        return
    verdict = "too-many-in-flight"
    if forwards_first(schedule):
        verdict = "gpipe-again"
    elif got[0] == got[-1]:
        verdict = "same-warm-up"
    elif all(g == w + 1 for g, w in zip(got, want)):
        verdict = "one-too-many"
    raise Wrong(verdict, f"{where}: expected ranks to hold {want} micro-batches at most, "
                         f"got {got}; {first_ops(schedule, p - 1)}")


GPIPE = Task(
    "8.2",
    "gpipe_order",
    "08_pipeline",
    (
        Subcheck("4 ranks, 8 micro-batches: legal, all forwards first",
                 each(ask, (FIRST,), whole, expect_forwards_first), gate=True),
        Subcheck("makespan (m + p - 1) (T_F + T_B)",
                 each(ask, (FIRST,), expect_makespan(gpipe, "too-slow"))),
        Subcheck("any number of ranks and micro-batches",
                 any_size(ask_others, OTHERS + FEW, whole, expect_forwards_first,
                          expect_makespan(gpipe, "too-slow")), points=2),
    ),
    forbid=BUILDERS,
    hints=HINTS | hints_of("""
        forbidden: Build the lists yourself: Op(stage, kind, mb).
        halves: GPipe's backward is one op, B; it is not taken apart.
        backward-too-early: This rank starts with backwards before its forwards are done. In GPipe
            all m forwards come first.
        too-slow: The order is legal, and ranks wait for each other. All ranks take the
            micro-batches in one order, so that the next can start on what this one just finished.
    """),
)


@checker(GPIPE)
def check_gpipe_order(fn, seed=None):
    """Points for `fn(p, m)`: GPipe's schedule, one list of Op per rank."""


ONE_F_ONE_B = Task(
    "8.3",
    "one_f_one_b_order",
    "08_pipeline",
    (
        Subcheck("4 ranks, 8 micro-batches: legal, rank r holds p - r micro-batches",
                 each(ask, (FIRST,), whole, expect_in_flight), points=2, gate=True),
        Subcheck("makespan (m + p - 1) (T_F + T_B)",
                 each(ask, (FIRST,), expect_makespan(one_f_one_b, "too-slow"))),
        Subcheck("any number of ranks and micro-batches",
                 any_size(ask_others, OTHERS, whole, expect_in_flight,
                          expect_makespan(one_f_one_b, "too-slow")), points=2),
        Subcheck("fewer micro-batches than ranks",
                 special("few-micro-batches", ask_few, FEW, whole, expect_in_flight,
                     expect_makespan(one_f_one_b, "too-slow"))),
    ),
    forbid=BUILDERS,
    hints=HINTS | hints_of("""
        forbidden: Build the lists yourself: Op(stage, kind, mb).
        halves: Here the backward is one op, B; it is not taken apart.
        gpipe-again: This is GPipe: all forwards first, so all m micro-batches are held. Rank r
            needs p - 1 - r forwards ahead, no more; then one forward and one backward in turn.
        same-warm-up: Every rank holds as many as rank 0. The last rank can run its first backward
            right after its first forward: the warm-up depends on the rank.
        one-too-many: Each rank holds one micro-batch more than it needs. Is it p - 1 - r forwards
            and then F, B in turn, or p - r forwards and then B, F? Both are right, not their mix.
        too-many-in-flight: Rank r runs p - 1 - r forwards; after that every forward is followed by
            a backward, which frees what the oldest micro-batch holds.
        too-slow: The order is legal, and ranks wait. Is the warm-up too short? Until the first
            gradient can come back to rank r, p - 1 - r other micro-batches have passed it. And
            backwards take the oldest micro-batch first.
    """),
)


@checker(ONE_F_ONE_B)
def check_one_f_one_b_order(fn, seed=None):
    """Points for `fn(p, m)`: the schedule of 1F1B, one list of Op per rank."""
