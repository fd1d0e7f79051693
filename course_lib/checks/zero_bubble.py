"""Exercise 09, tasks 9.1 and 9.3: the orders of interleaved 1F1B and of ZB-H1."""

from __future__ import annotations

from ..schedule import Schedule, interleaved_1f1b, zb_h1
from ..schedule.memory import peak_in_flight
from ..schedule.ops import interleaved
from .machinery import Subcheck, Task, Wrong, checker
from .pipelines_order import forwards_first, whole
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

TWO_CHUNKS = ((4, 8, 2), (4, 12, 2), (4, 4, 2), (2, 6, 2), (3, 6, 2), (6, 12, 2), (1, 3, 2))
MORE_CHUNKS = ((4, 8, 3), (4, 8, 4), (2, 4, 3), (4, 8, 1))
REAL_TIMES = {"F": 10.0, "I": 12.0, "W": 6.0}
halves = expect_kinds("FIW", "whole-backwards", "expected backwards in halves, I and W")


def expect_interleaved_in_flight(where: str, schedule: Schedule, case) -> None:
    """Every rank holds what interleaved 1F1B holds, or less."""
    best = interleaved_1f1b(*case)
    want, got = ([round(peak_in_flight(s, rank), 2) for rank in range(case[0])]
                 for s in (best, schedule))
    if any(g > w + 1e-9 for g, w in zip(got, want)):
        raise Wrong("breadth-first" if forwards_first(schedule) else "too-many-in-flight",
                    f"{where}: expected ranks to hold the activations of {want} micro-batches at "
                    f"most, got {got}; {first_ops(schedule)}")


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


def place(p: int, m: int, v: int):
    return interleaved(p, v)


interleaved_makespan = expect_makespan(interleaved_1f1b, "too-slow")

INTERLEAVED = Task(
    "9.1",
    "interleaved_order",
    "09_zero_bubble",
    (
        Subcheck("4 ranks, 8 micro-batches, 2 chunks: legal, bubble (p-1)/v (T_F + T_B)",
                 each(ask, TWO_CHUNKS[:1], whole, interleaved_makespan, place=place), points=2,
                 gate=True),
        Subcheck("no more activations than interleaved 1F1B",
                 each(ask, TWO_CHUNKS[:1], expect_interleaved_in_flight, place=place), points=2),
        Subcheck("any number of ranks and micro-batches",
                 any_size(ask_others, TWO_CHUNKS, whole, interleaved_makespan,
                          expect_interleaved_in_flight, place=place)),
        Subcheck("one, three and four chunks",
                 special("only-two-chunks", ask_few, MORE_CHUNKS, whole, interleaved_makespan,
                         expect_interleaved_in_flight, place=place)),
    ),
    forbid=BUILDERS,
    hints=HINTS | hints_of("""
        forbidden: Build the lists yourself: Op(stage, kind, mb).
        halves: Here the backward is one op, B.
        wrong-rank: Stages are dealt out like cards: chunk c of rank r is stage c p + r, so that
            neighbours in the model are on neighbouring ranks.
        op-missing: Each rank runs m forwards and m backwards of each of its v chunks.
        illegal-order: Read the sentence above. Forwards go through the chunks from the first to the
            last, backwards from the last to the first.
        too-slow: The order is legal, and ranks wait. p micro-batches go through a chunk, then the
            same p through the next; the warm-up has 2 (p - 1 - r) + (v - 1) p forwards.
        breadth-first: All forwards first: the bubble is small, and all m micro-batches are held.
            After the warm-up take one forward and one backward in turn.
        too-many-in-flight: The warm-up is longer than it needs to be: 2 (p - 1 - r) + (v - 1) p
            forwards of a chunk, at most m v.
        only-two-chunks: With two chunks it is right. Is there a 2 in your code that is v?
    """),
)


@checker(INTERLEAVED)
def check_interleaved_order(fn, seed=None):
    """Points for `fn(p, m, v)`: interleaved 1F1B, one list of Op per rank."""


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
