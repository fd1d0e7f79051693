"""Exercise 01, task 1.3: ring all-gather."""

from __future__ import annotations

import torch

from . import collective_runs as runs
from .collective_runs import F32, FORBID, I64, RAGGED, SIZES, difference, numbers, same
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .verdicts import hints_of


def _gathers(driver, worlds, sizes_of, dtype=F32, kept=False):
    """A subcheck of ring_all_gather: sizes_of(W) lists the sizes of each case."""

    def test(bench: Bench) -> None:
        for W in worlds:
            asked = [list(sizes[:W]) for sizes in sizes_of(W)]
            lists = [
                [numbers(bench, rank, 0, (n,), dtype, case) for rank, n in enumerate(sizes)]
                for case, sizes in enumerate(asked)
            ]
            outcome = runs.run(
                bench,
                W,
                driver,
                [[(xs[rank], list(sizes)) for xs, sizes in zip(lists, asked)] for rank in range(W)],
            )
            for number, xs in enumerate(lists):
                for rank, seen in enumerate(outcome.values):
                    where = f"W = {W}, rank {rank}, sizes {asked[number]}"
                    result, x, late = seen[number]
                    _judge_list(where, rank, result, xs)
                    if kept:
                        runs.expect_kept(where, "x", xs[rank], x)
                        runs.expect_own_storage(where, "x", result, late)

    return test


def _judge_list(where: str, rank: int, got, xs) -> None:
    """Raise Wrong unless `got` is the list of all ranks' x, by rank."""
    if not isinstance(got, list) or len(got) != len(xs):
        kind = f"a list of {len(got)}" if isinstance(got, list) else f"a {type(got).__name__}"
        raise Wrong("no-list", f"{where}: expected a list of {len(xs)} tensors, got {kind}")
    for entry, (mine, want) in enumerate(zip(got, xs)):
        here = f"{where}, entry {entry}"
        runs.expect_tensor(here, mine)
        if same(mine, want):
            continue
        text = difference(here, mine, want)
        if mine.numel() > want.numel() and torch.equal(mine[: len(want)], want):
            raise Wrong("padded", f"{text}: {mine.numel()} elements in the place of {len(want)}")
        if all(same(other, mine) for other in got):
            raise Wrong("one-tensor-for-all", f"{text}, as in every entry")
        owner = next((r for r, x in enumerate(xs) if same(mine, x)), None)
        if owner is not None:
            raise Wrong("wrong-order", f"{text}, which is the x of rank {owner}")
        found = runs.explain_sum(mine, [[x] for x in xs])
        if found and sum(found[1]) > 1:
            raise Wrong("added-not-copied", f"{text}, a sum of several ranks' x")
        raise Wrong("entry-missing", text)


def _gathers_cost(bench: Bench) -> None:
    W = 4
    xs = [numbers(bench, rank, 0, (6,)) for rank in range(W)]
    trace = runs.run(bench, W, runs.cost_calls, [[(x, [6] * W)] for x in xs]).trace
    runs.expect_ring_cost(f"W = {W}, x of 24 B", trace, [24 * (W - 1)] * W, 24 * W)


ALL_GATHER = Task(
    "1.3",
    "ring_all_gather",
    "01_collectives",
    (
        Subcheck("one rank", _gathers(runs.value_calls, (1,), lambda W: [(3,)])),
        Subcheck(
            "two to four ranks", _gathers(runs.value_calls, SIZES, lambda W: [(3,) * W]), gate=True
        ),
        Subcheck("different sizes, some empty", _gathers(runs.more_calls, (3,), lambda W: RAGGED)),
        Subcheck("W-1 steps around the ring, (W-1)/W of the bytes sent", _gathers_cost, points=2),
        Subcheck(
            "any dtype; x kept; results of their own",
            _gathers(runs.edge_calls, (5,), lambda W: [(3,) * W] * 2, I64, kept=True),
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        deadlock: In a ring where everybody sends first, nobody receives. exchange posts the receive
            together with the send.
        to-itself: A rank tries to send to itself. The neighbours are (rank + 1) % size and (rank
            - 1) % size.
        error-alone: With one rank there is no neighbour: no step is done, the list has one entry.
        only-two-ranks: The neighbours are (rank + 1) % size and (rank - 1) % size. 1 - rank is the
            same for two ranks, and wrong for more.
        only-powers-of-two: A partner such as rank ^ distance does not exist for every number of
            ranks. In a ring the partner is always a neighbour, modulo group.size.
        no-modulo: An index has left the list. Going around the ring, the numbers of the parts wrap:
            take them modulo group.size.
        no-list: Return a list of group.size tensors: entry r is the x of rank r.
        padded: The entries have one common size. sizes[r] says how long entry r is: make room for
            exactly that many.
        one-tensor-for-all: All entries are one and the same tensor: [t] * n repeats the tensor, it
            makes no new ones. Call torch.empty once for each entry.
        wrong-order: Entry r is the x of rank r, not the r-th that arrives. In step s the x of rank
            (rank - s - 1) % size arrives.
        entry-missing: A part never arrived here. In each step send on what came in the step before,
            and do W-1 steps: with two ranks one step is enough, so this does not show there.
        added-not-copied: In an all-gather nothing is added: what arrives takes its place as it is.
        root-in-the-middle: One rank collects everything and sends it out. In a ring all ranks work
            alike, and no link carries more than another.
        gathers-everything: More than each part once. In step s send only the part that arrived in
            step s - 1, not all that you have.
        too-much-traffic: Each rank sends W-1 parts, one per step.
        too-little-traffic: Each rank sends W-1 parts, one per step.
        not-a-ring: The bytes are right, and the parts go straight to everybody. In a ring a rank's
            only peers are its two neighbours: parts are handed on.
        too-many-steps: The ranks wait for one another. Send and receive at the same time, with
            exchange or with isend and irecv.
        changed-x: x belongs to the caller: receive into other tensors.
        result-changes-later: An entry shares memory with x or with an earlier result. Make each
            with clone or torch.empty in this call.
        call-mismatch: Sender and receiver disagree about the size. The part that you receive is the
            one that your left neighbour sends, of sizes[that rank] elements.
    """),
)


@checker(ALL_GATHER)
def check_ring_all_gather(fn, seed=None):
    """Points for `fn(x, group, sizes)`: the list of all ranks' x, around a ring."""
