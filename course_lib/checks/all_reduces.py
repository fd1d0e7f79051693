"""Exercise 03, task 3.1: recursive halving-doubling. The others: a file each."""

from __future__ import annotations

from . import collective_runs as runs
from .collective_runs import F32, F64, FORBID, I64, numbers
from .collectives_all_reduce import judge_reduced
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .verdicts import hints_of

VECTOR = ((24,), F32)
KINDS = (VECTOR, ((11,), F32), ((), F64), ((0,), F32), ((3, 5), I64))


def sums(driver, worlds: dict[int, tuple], kinds):
    """A subcheck: for each number of ranks one launch with an all-reduce of every kind (shape,
    dtype), and with every further argument that `worlds` lists for it.
    """

    def test(bench: Bench) -> None:
        for W, nodes in worlds.items():
            asked = [(kind, more) for kind in kinds for more in (nodes or ((),))]
            lists = [[numbers(bench, rank, 0, *kind) for rank in range(W)] for kind, _ in asked]
            cases = [
                [(xs[rank], *more) for xs, (_, more) in zip(lists, asked)] for rank in range(W)
            ]
            outcome = runs.run(bench, W, driver, cases)
            for number, (xs, (_, more)) in enumerate(zip(lists, asked)):
                for rank, seen in enumerate(outcome.values):
                    where = f"W = {W}" + "".join(f", G = {G}" for G in more)
                    where += f", rank {rank}, x of shape {tuple(xs[0].shape)}"
                    judge_reduced(where, rank, xs, *seen[number][:2])

    return test


def _halving_cost(bench: Bench) -> None:
    W, n = 4, 96
    cases = [[(numbers(bench, rank, 0, *VECTOR),)] for rank in range(W)]
    trace = runs.run(bench, W, runs.cost_calls, cases).trace
    where, sent, got = f"W = {W}, x of {n} B", runs.messages(trace), runs.steps(trace)
    if got == 2 * (W - 1) and all((to - rank) % W == 1 for rank, to, _ in sent):
        raise Wrong("as-the-ring", f"{where}: expected 2 log2 {W} = 4 steps, got {got}: a ring")
    runs.expect_no_hub(where, trace)
    if sent and all(nbytes == n for *_, nbytes in sent):
        raise Wrong("whole-vectors", f"{where}: expected messages of n/2 and n/4, all have {n} B")
    runs.expect_bytes(where, trace, [2 * (W - 1) * n // W] * W, everything=(W - 1) * n)
    runs.expect_steps(where, trace, 4)


HALVING = Task(
    "3.1",
    "halving_doubling",
    "03_all_reduce",
    (
        Subcheck("one rank", sums(runs.value_calls, {1: ()}, [VECTOR])),
        Subcheck("two and four ranks", sums(runs.value_calls, {2: (), 4: ()}, [VECTOR]), gate=True),
        Subcheck("2 log2 W steps, 2(W-1)/W of x sent", _halving_cost, points=2),
        Subcheck(
            "eight ranks, any size, shape and dtype",
            sums(runs.edge_calls, {8: ()}, KINDS),
            points=2,
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        deadlock: Partners send to each other at the same time: use exchange.
        call-mismatch: Two partners must cut the same interval at the same place. Keep low and high:
            the interval that this rank still sums, the same on both before each halving.
        to-itself: A rank sends to itself. The partner is rank ^ distance, with distance W/2, W/4,
            ..., 1.
        error-alone: With one rank there is no partner, and no step.
        only-two-ranks: 1 - rank is the partner for two ranks only; it is rank ^ distance.
        no-tensor: Return x.
        not-in-place: x itself has to change: slices of x.view(-1) share its memory.
        averaged: This is the mean; an all-reduce gives the sum.
        own-part: x is as it was: add what arrives to the half that this rank keeps.
        tail-forgotten: The last elements are not reduced. Cut at low + (high - low) // 2, and give
            the rest to the other half, however many there are.
        phase-missing: One chunk is right: that is the reduce-scatter. Now go through the same
            partners in reverse, and copy.
        rank-missing: Some sums miss a rank. Is the distance halved in each step, down to 1, and the
            half that is kept, decided by rank & distance? Does the second phase begin with the last
            step of the first?
        added-twice: The second phase copies. Adding belongs to the first.
        wrong-value: The two phases do not fit. In the second, each step gives back what the same
            step of the first phase kept, and receives what it gave away: last step first.
        as-the-ring: This is the ring: right, and 2(W-1) steps. Halve the interval and the distance
            in each step.
        whole-vectors: Whole vectors travel: that is recursive doubling, log2 W times n bytes. Send
            the half that the partner keeps, and no more.
        root-in-the-middle: All goes through one rank. Every rank works in each step.
        gathers-everything: Every rank gets all of x from all. Sum halves, then quarters.
        too-much-traffic: In the first phase n/2, n/4, ... are sent, in the second the same again.
        too-little-traffic: In the first phase n/2, n/4, ... are sent, in the second the same.
        too-many-steps: log2 W steps in each phase, and in each step partners exchange at once.
    """),
)


@checker(HALVING)
def check_halving_doubling(fn, seed=None):
    """Points for `fn(x, group)`: x becomes the sum over W = 2^k ranks, by halving and doubling."""
