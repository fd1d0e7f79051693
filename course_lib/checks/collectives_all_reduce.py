"""Exercise 01, task 1.4: all-reduce from the learner's two phases, or from lent ones."""

from __future__ import annotations

import torch

from ..launch.errors import RankFailure
from . import collective_runs as runs
from .collective_runs import F32, F64, FORBID, I64, SIZES, difference, numbers, same
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .verdicts import hints_of

VECTOR = ((24,), F32)
LENT = (
    "your ring_reduce_scatter and ring_all_gather do not do all that all_reduce needs; where they "
    "do not, it was graded with the course's own"
)


def lent_value_calls(fn, group, cases):
    return _lent(runs.value_calls, fn, group, cases)


def lent_more_calls(fn, group, cases):
    return _lent(runs.more_calls, fn, group, cases)


def lent_cost_calls(fn, group, cases):
    return _lent(runs.cost_calls, fn, group, cases)


def lent_edge_calls(fn, group, cases):
    return _lent(runs.edge_calls, fn, group, cases)


LENDING = {
    driver.__name__.removeprefix("lent_"): driver
    for driver in (lent_value_calls, lent_more_calls, lent_cost_calls, lent_edge_calls)
}


def _lent(driver, fn, group, cases):
    """The driver, with the course's two phases in the place of the learner's."""
    scope = getattr(fn, "__globals__", {})
    scope.update(ring_reduce_scatter=lent_reduce_scatter, ring_all_gather=lent_all_gather)
    return driver(fn, group, cases)


def lent_reduce_scatter(parts, group):
    """Task 1.2 as the course has it, while the library's own may not be called."""
    r, W = group.rank, group.size
    partial = parts[(r - 1) % W].clone()
    for step in range(W - 1):
        arrived = torch.empty_like(parts[(r - step - 2) % W])
        group.exchange(partial, (r + 1) % W, arrived, (r - 1) % W)
        partial = arrived.add_(parts[(r - step - 2) % W])
    return partial


def lent_all_gather(x, group, sizes):
    """Task 1.3 likewise."""
    r, W = group.rank, group.size
    gathered = [x.clone() if rank == r else x.new_empty(n) for rank, n in enumerate(sizes)]
    for step in range(W - 1):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return gathered


def _own_or_lent(test):
    """The subcheck with the learner's two phases, and with the lent ones where only those pass."""

    def subcheck(bench: Bench) -> None:
        if getattr(bench, "lent", False):
            return test(bench)
        try:
            return test(bench)
        except (Wrong, RankFailure) as failure:
            own = failure
        bench.lent = True
        try:
            test(bench)
        except (Wrong, RankFailure) as lent:
            if not _unsolved(own) or _unsolved(lent):
                bench.lent = False
                raise own from None
            bench.notes.append(LENT)  # a stub is in the way of the learner's own fault
            raise
        bench.notes.append(LENT)

    return subcheck


def _unsolved(failure: Exception) -> bool:
    return getattr(failure, "kind", "") == "NotImplementedError"


def _run(bench: Bench, W: int, driver, cases):
    chosen = LENDING[driver.__name__] if getattr(bench, "lent", False) else driver
    return runs.run(bench, W, chosen, cases, index="too-few-chunks")


def _all_reduces(driver, worlds, kinds):
    """A subcheck of all_reduce: one launch for each number of ranks, a case for each (shape,
    dtype).
    """

    def test(bench: Bench) -> None:
        for W in worlds:
            lists = [
                [numbers(bench, rank, 0, shape, dtype) for rank in range(W)]
                for shape, dtype in kinds
            ]
            outcome = _run(bench, W, driver, [[(xs[rank],) for xs in lists] for rank in range(W)])
            for number, xs in enumerate(lists):
                for rank, seen in enumerate(outcome.values):
                    where = f"W = {W}, rank {rank}, x of shape {tuple(xs[0].shape)}"
                    judge_reduced(where, rank, xs, *seen[number][:2])

    return _own_or_lent(test)


def judge_reduced(where: str, rank: int, xs, result, x) -> None:
    """Raise Wrong unless the result and x are the sum over ranks."""
    want, W = sum(xs), len(xs)
    runs.expect_tensor(where, result)
    if same(result, want) and not same(x, want):
        raise Wrong(
            "not-in-place", f"{where}: the result is right, and x holds {runs.show_tensor(x)}"
        )
    if same(result, want):
        return
    text = difference(where, result, want)
    if result.shape != want.shape:
        raise Wrong("wrong-shape", text)
    flat, right, own = (t.reshape(-1).double() for t in (result, want, xs[rank]))
    if torch.allclose(flat * W, right):
        raise Wrong("averaged", f"{text}, which is the mean")
    agree = int((flat == right).long().cumprod(0).sum())
    if agree and len(flat) - agree < W and torch.equal(flat[agree:], own[agree:]):
        raise Wrong("tail-forgotten", f"{text}; from element {agree} on it is rank {rank}'s own")
    mixed = _in_chunks(result, xs)
    if mixed is None:
        raise Wrong("wrong-value", text)
    chunk, counts = next((c, n) for c, n in mixed if n != [1] * W)
    text = f"{text}; chunk {chunk} has " + ", ".join(
        f"rank {r}: {n}x" for r, n in enumerate(counts)
    )
    if max(counts) > 1:
        raise Wrong("added-twice", text)
    alone = [int(r == rank) for r in range(W)]
    if all(n == alone for _, n in mixed):
        raise Wrong("own-part", text)
    if sum(n == [1] * W for _, n in mixed) == 1:
        raise Wrong("phase-missing", text)
    raise Wrong("rank-missing", text)


def _in_chunks(result, xs):
    """[(chunk, how often each rank is in it)], or None where that explains nothing."""
    found, W = [], len(xs)
    chunks = [x.reshape(-1).tensor_split(W) for x in xs]
    for number, chunk in enumerate(result.reshape(-1).tensor_split(W)):
        explained = runs.explain_sum(chunk, [[mine[number]] for mine in chunks])
        if explained is None:
            return None
        found.append((number, explained[1]))
    return found


@_own_or_lent
def _all_reduce_cost(bench: Bench) -> None:
    W = 4
    n = 4 * 6 * W
    xs = [numbers(bench, rank, 0, (6 * W,)) for rank in range(W)]
    trace = _run(bench, W, runs.cost_calls, [[(x,)] for x in xs]).trace
    where = f"W = {W}, x of {n} B"
    runs.expect_no_hub(where, trace)
    runs.expect_bytes(where, trace, [2 * (W - 1) * n // W] * W, everything=(W - 1) * n)
    runs.expect_steps(where, trace, 2 * (W - 1))


ALL_REDUCE = Task(
    "1.4",
    "all_reduce",
    "01_collectives",
    (
        Subcheck("one rank", _all_reduces(runs.value_calls, (1,), [((4,), F32)])),
        Subcheck("two to four ranks", _all_reduces(runs.value_calls, SIZES, [VECTOR]), gate=True),
        Subcheck(
            "sizes that W does not divide",
            _all_reduces(runs.more_calls, (3,), [((n,), F32) for n in (11, 10, 5, 2, 0)]),
        ),
        Subcheck("2(W-1) steps, 2(W-1)/W of x sent", _all_reduce_cost, points=2),
        Subcheck(
            "any shape and dtype, x changed in place",
            _all_reduces(runs.edge_calls, (5,), [((3, 5), I64), ((), F64), ((2, 2, 3), F64)]),
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        not-implemented: all_reduce is still the stub, or it calls one of your earlier tasks that
            is. Solved alone it is graded with the course's two phases.
        deadlock: All ranks call the two phases, in the same order. Is a call inside an if?
        to-itself: A rank tries to send to itself. The neighbours are (rank + 1) % size and (rank
            - 1) % size.
        error-alone: With one rank nothing is sent: the two phases do no step.
        no-tensor: Return x.
        not-in-place: x itself has to change. Chunks from x.view(-1).tensor_split(size) share x's
            memory; copy each gathered chunk into its place.
        wrong-shape: x keeps its shape: flatten it by a view for the two phases, return x itself.
        averaged: This is the mean. An all-reduce gives the sum; who wants the mean divides.
        own-part: x is as it was. The sums have to be copied back into x.
        tail-forgotten: The last elements are not reduced. n // size cuts off the rest; tensor_split
            makes the first chunks one element longer instead.
        too-few-chunks: An index has left the list of chunks. torch.chunk may make fewer chunks than
            asked for; tensor_split always makes group.size, some of them empty.
        only-two-ranks: The neighbours are (rank + 1) % size and (rank - 1) % size.
        only-powers-of-two: Pairs such as rank ^ distance exist for powers of two only. The two ring
            phases work for every number of ranks.
        phase-missing: One chunk is right, the others are not: this is a reduce-scatter. The
            all-gather of the summed chunks is missing.
        rank-missing: Some sums miss a rank. Are the chunks of both phases the same ones, and does
            rank r hold chunk r in between?
        added-twice: Something is added in the second phase. There the sums are complete: copy them.
        root-in-the-middle: All goes through one rank, which receives and sends (W-1)n bytes. Split
            the work: rank r sums chunk r.
        gathers-everything: Every rank gets all of x from all ranks and adds them up: (W-1)n bytes
            sent. Sum one chunk per rank first, then gather the sums: 2(W-1)/W n.
        too-much-traffic: Two phases of W-1 steps, each with a chunk of n/W bytes: 2(W-1)/W n in
            all. Whole vectors that travel cost more.
        too-little-traffic: Two phases of W-1 steps, each with a chunk of n/W bytes.
        too-many-steps: The ranks wait for one another. Send and receive at the same time.
    """),
)


@checker(ALL_REDUCE)
def check_all_reduce(fn, seed=None):
    """Points for `fn(x, group)`: x becomes the sum, by reduce-scatter and all-gather."""
