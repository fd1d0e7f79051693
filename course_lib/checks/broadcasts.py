"""What tasks 1.1 and 1.6 share: is it a broadcast, from any root, and what did it cost."""

from __future__ import annotations

import torch

from ..collectives import tree_broadcast
from ..dry import dry_run
from ..machine import laptop
from ..virtual_time import replay
from . import collective_runs as runs
from .collective_runs import difference, expect_tensor, numbers, same
from .machinery import Bench, Wrong

LARGE = 2**20  # elements of 4 bytes: bandwidth matters, latency hardly


def broadcasts(driver, kinds, worlds: tuple[int, ...], other_roots: bool = False):
    """A subcheck: for each number of ranks one launch with every kind of x (shape, dtype) from
    root 0, or from each other root.
    """

    def test(bench: Bench) -> None:
        for W in worlds:
            asked = [
                (kind, root) for kind in kinds for root in (range(1, W) if other_roots else (0,))
            ]
            cases = [
                [(numbers(bench, rank, root, shape, dtype), root) for (shape, dtype), root in asked]
                for rank in range(W)
            ]
            absent = "no-wrap" if other_roots else ""
            outcome = runs.run(bench, W, driver, cases, absent=absent)
            for number, (_, root) in enumerate(asked):
                brought = [mine[number][0] for mine in cases]
                _judge_all(root, brought, [seen[number] for seen in outcome.values])

    return test


def _judge_all(root: int, brought, seen) -> None:
    """Raise what is wrong on the first rank; a rank that holds a third rank's x says most."""
    wrongs = []
    for rank, (result, x, _) in enumerate(seen):
        where = f"W = {len(seen)}, root {root}, rank {rank}"
        if brought[0].dim() != 1:
            where += f", x of shape {tuple(brought[0].shape)}"
        try:
            _judge(where, rank, root, brought, result, x)
        except Wrong as wrong:
            wrongs.append(wrong)
    if wrongs:
        raise min(wrongs, key=lambda wrong: wrong.verdict != "wrong-root")


def _judge(where: str, rank: int, root: int, brought, result, x) -> None:
    """Raise Wrong unless x and the result are what the root brought."""
    want, mine = brought[root], brought[rank]
    if rank == root and not same(x, want):
        raise Wrong("changed-x", difference(f"{where} (the root)", x, want) + " in x afterwards")
    expect_tensor(where, result)
    if same(result, want) and not same(x, want):
        raise Wrong(
            "not-in-place", f"{where}: the result is right, and x still holds {runs.show_tensor(x)}"
        )
    if same(result, want):
        return
    text = difference(where, result, want)
    if same(result, mine):
        raise Wrong("not-reached", f"{text}, which is what it held before")
    for other, theirs in enumerate(brought):
        if same(result, theirs):
            raise Wrong("wrong-root", f"{text}, which is what rank {other} held")
    if result.shape == want.shape and want.numel():
        flat, right, old = (t.reshape(-1) for t in (result, want, mine))
        agree = int((flat == right).long().cumprod(0).sum())
        if agree and torch.equal(flat[agree:], old[agree:]):
            raise Wrong("tail-forgotten", f"{text}; from element {agree} on as before")
        if ((flat == right) | (flat == old)).all():
            share = int((flat == right).sum())
            raise Wrong("phase-missing", f"{text}: {share} of {len(flat)} elements have arrived")
    raise Wrong("wrong-value", text)


def tree_cost(*worlds: int):
    """A subcheck: W-1 messages of n bytes, in at most ceil(log2 W) steps."""

    def test(bench: Bench) -> None:
        for W in worlds:
            cases = [[(numbers(bench, rank, 0, (60,)), 0)] for rank in range(W)]
            trace = runs.run(bench, W, runs.cost_calls, cases).trace
            sent, most = runs.messages(trace), (W - 1).bit_length()
            total, want, got = sum(m[2] for m in sent), (W - 1) * 240, runs.steps(trace)
            if total > want:
                raise Wrong(
                    "too-much-traffic",
                    f"W = {W}, x of 240 B: expected {want} B sent by all ranks together, "
                    f"x once to each rank that lacks it, got {total} B",
                )
            if got <= most:
                continue
            by_rank = [trace.messages_sent(rank) for rank in range(W)]
            verdict = "too-many-steps"
            if by_rank[0] >= W - 1:
                verdict = "root-sends-to-all"
            elif max(by_rank) == 1:
                verdict = "chain"
            raise Wrong(
                verdict,
                f"W = {W}, root 0: expected at most ceil(log2 {W}) = {most} steps,"
                f" got {got}; messages sent by each rank: {by_rank}",
            )

    return test


def large_call(fn, group, elements, seed):
    """In a rank: broadcast a vector made here, and return a sample of x."""
    x = torch.full((elements,), -1.0)
    if group.rank == 0:
        x = torch.arange(elements, dtype=torch.float32) + seed
    fn(x, group, 0)
    return x[:: elements // 64].clone()


def faster_than_tree(*worlds: int):
    """A subcheck: replayed on laptop(), 4 MiB take less time than along the tree."""

    def test(bench: Bench) -> None:
        for W in worlds:
            seed = int(torch.randint(1000, (), generator=bench.generator(W)))
            outcome = bench.run(W, large_call, [(LARGE, seed)] * W)
            want = (torch.arange(LARGE, dtype=torch.float32) + seed)[:: LARGE // 64]
            for rank, got in enumerate(outcome.values):
                if not same(got, want):
                    raise Wrong(
                        "wrong-value",
                        difference(f"W = {W}, 4 MiB, rank {rank}, a sample", got, want),
                    )
            _judge_time(W, outcome.trace)

    return test


def _judge_time(W: int, trace) -> None:
    machine, n = laptop(), 4 * LARGE
    tree = dry_run(lambda group: tree_broadcast(torch.empty(LARGE), group), W, record="calls")
    limit = replay(tree, machine).makespan
    got = replay(trace, machine).makespan
    if got < 0.99 * limit:
        return
    text = (
        f"W = {W}, 4 MiB on laptop(): expected less than the tree's {1e3 * limit:.2f} ms, got "
        f"{1e3 * got:.2f} ms"
    )
    most = max(trace.messages_sent(rank) for rank in range(W))
    sent = [trace.bytes_sent(rank) for rank in range(W)]
    if most * machine.route(0, 1).latency > limit / 2:
        raise Wrong("too-many-pieces", f"{text}; one rank sends {most} messages")
    if sent[0] >= (W - 1) * n:
        raise Wrong("root-sends-to-all", f"{text}; the root sends {sent[0]} B")
    if sent[0] > n:
        raise Wrong("as-the-tree", f"{text}; the root sends {sent[0]} B, x has {n} B")
    raise Wrong(
        "no-overlap", f"{text}; no rank sends more than {max(sent)} B, and they wait for each other"
    )
