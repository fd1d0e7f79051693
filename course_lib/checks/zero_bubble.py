"""Exercise 09, task 9.1: the order of interleaved 1F1B. The others: a file each."""

from __future__ import annotations

from ..schedule import Schedule, interleaved_1f1b
from ..schedule.memory import peak_in_flight
from ..schedule.ops import interleaved
from .machinery import Subcheck, Task, Wrong, checker
from .pipelines_order import forwards_first, whole
from .schedule_runs import (
    BUILDERS,
    HINTS,
    any_size,
    ask,
    ask_few,
    ask_others,
    each,
    expect_makespan,
    first_ops,
    special,
)
from .verdicts import hints_of

TWO_CHUNKS = ((4, 8, 2), (4, 12, 2), (4, 4, 2), (2, 6, 2), (3, 6, 2), (6, 12, 2), (1, 3, 2))
MORE_CHUNKS = ((4, 8, 3), (4, 8, 4), (2, 4, 3), (4, 8, 1))


def expect_interleaved_in_flight(where: str, schedule: Schedule, case) -> None:
    """Every rank holds what interleaved 1F1B holds, or less."""
    best = interleaved_1f1b(*case)
    want, got = ([round(peak_in_flight(s, rank), 2) for rank in range(case[0])]
                 for s in (best, schedule))
    if any(g > w + 1e-9 for g, w in zip(got, want)):
        raise Wrong("breadth-first" if forwards_first(schedule) else "too-many-in-flight",
                    f"{where}: expected ranks to hold the activations of {want} micro-batches at "
                    f"most, got {got}; {first_ops(schedule)}")


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
