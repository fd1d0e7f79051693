"""Exercise 01, tasks 1.1 to 1.3: tree broadcast, ring reduce-scatter, ring all-gather.

Tasks 1.4 to 1.6 are in collectives_more.py.
"""

from __future__ import annotations

import torch

from . import collective_runs as runs
from .broadcasts import broadcasts, tree_cost
from .collective_runs import FORBID, difference, numbers, same
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .verdicts import hints_of

SIZES = (2, 4, 3)  # 4 before 3: tells "two ranks only" from "powers of two only"
F32, F64, I64, BF16 = torch.float32, torch.float64, torch.int64, torch.bfloat16
RAGGED = ((2, 0, 5, 3, 1), (0, 4, 1, 2, 2))

TREE = Task(
    "1.1",
    "tree_broadcast",
    "01_collectives",
    (
        Subcheck("one rank", broadcasts(runs.value_calls, [((4,), F32)], (1,))),
        Subcheck(
            "two to four ranks, root 0",
            broadcasts(runs.value_calls, [((4,), F32)], SIZES),
            gate=True,
        ),
        Subcheck("any root", broadcasts(runs.more_calls, [((4,), F32)], (3,), True)),
        Subcheck("ceil(log2 W) steps, x once to each rank", tree_cost(5), points=2),
        Subcheck(
            "any shape and dtype, x changed in place",
            broadcasts(
                runs.edge_calls, [((2, 3), I64), ((), F64), ((0,), F32), ((1,), BF16)], (5,), True
            ),
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        deadlock: A rank that waits to receive has exactly one rank that sends to it. Write down,
            for W = 3 and W = 5, who sends to whom in each step. If it hangs only for another root,
            count from the root: place = (rank - root) % size, and back with (place + root) % size.
        error-alone: A rank that is alone has x already: no step is left to do.
        only-two-ranks: 1 - rank is the other rank for two ranks only. In step k, place p < 2**k
            sends to p + 2**k, if that is below group.size.
        only-powers-of-two: It works for 2 and 4 ranks. With 3, some partner does not exist: send
            only when place + distance < group.size.
        no-tensor: Return x at the end, on every rank.
        not-in-place: Receive into x itself, group.recv(x, frm), not into a new tensor.
        not-reached: This rank never received. Which rank should send to it, and in which step?
        wrong-root: The tensor that arrived is not the root's. Either the root is taken to be rank
            0 (count places from the root), or a rank sends before it has received.
        changed-x: The root is the only one who has the right x, and must not receive.
        root-sends-to-all: This is the flat broadcast: all messages leave by one port, one after the
            other. Let ranks that already have x send too; their number doubles in each step.
        chain: Each rank hands x on to one other, so the last one waits W-1 steps. A rank that has x
            should go on sending in every later step.
        too-many-steps: It is a tree, and a slow one. The number of ranks that have x should double
            in each step: send to the largest subtree first, and let nobody wait for others.
        too-much-traffic: Each rank that lacks x receives it once: W-1 messages in all. Gathering
            what all ranks hold, or sending to ranks that have it, costs more.
    """),
)


def _sums(driver, W_list, shapes_of, dtype=F32, kept=False):
    """A subcheck of ring_reduce_scatter: shapes_of(W) lists the shapes of the parts of each case."""

    def test(bench: Bench) -> None:
        for W in W_list:
            tables = [
                [
                    [numbers(bench, rank, part, shape, dtype) for part, shape in enumerate(shapes)]
                    for rank in range(W)
                ]
                for shapes in shapes_of(W)
            ]
            outcome = runs.run(
                bench, W, driver, [[(t[rank],) for t in tables] for rank in range(W)]
            )
            for number, table in enumerate(tables):
                for rank, seen in enumerate(outcome.values):
                    shapes = [tuple(part.shape) for part in table[rank]]
                    where = f"W = {W}, rank {rank}, parts of shapes {shapes}"
                    result, parts, late = seen[number]
                    runs.judge_sum(where, rank, result, table, rank)
                    if kept:
                        runs.expect_kept(where, "parts", table[rank], parts)
                        runs.expect_own_storage(where, "parts", result, late)

    return test


def _sums_cost(bench: Bench) -> None:
    W = 4
    table = [[numbers(bench, rank, part, (4 + part,)) for part in range(W)] for rank in range(W)]
    trace = runs.run(bench, W, runs.cost_calls, [[(mine,)] for mine in table]).trace
    n = sum(part.nbytes for part in table[0])
    _ring_cost(f"W = {W}, parts of {n} B", trace, [n - own.nbytes for own in table[0]], n)


def _ring_cost(where: str, trace, want: list[int], n: int) -> None:
    W = trace.world_size
    runs.expect_no_hub(where, trace)
    runs.expect_bytes(where, trace, want, everything=2 * n)
    runs.expect_ring(where, trace)
    runs.expect_steps(where, trace, W - 1)


def _ragged(W: int):
    return [[(n,) for n in sizes[:W]] for sizes in RAGGED]


REDUCE_SCATTER = Task(
    "1.2",
    "ring_reduce_scatter",
    "01_collectives",
    (
        Subcheck("one rank", _sums(runs.value_calls, (1,), lambda W: [[(3,)] * W])),
        Subcheck(
            "two to four ranks", _sums(runs.value_calls, SIZES, lambda W: [[(3,)] * W]), gate=True
        ),
        Subcheck("parts of different sizes, some empty", _sums(runs.more_calls, (3,), _ragged)),
        Subcheck("W-1 steps around the ring, all parts but one sent", _sums_cost, points=2),
        Subcheck(
            "any shape and dtype; parts kept; a result of its own",
            _sums(runs.edge_calls, (5,), lambda W: [[(2, 3)] * W] * 2, I64, kept=True),
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        deadlock: In a ring where everybody sends first, nobody receives. exchange posts the receive
            together with the send.
        error-alone: With one rank there is no neighbour and nothing to add: no step is done.
        only-two-ranks: The neighbours are (rank + 1) % size and (rank - 1) % size. 1 - rank is the
            same for two ranks, and wrong for more.
        only-powers-of-two: A partner such as rank ^ distance does not exist for every number of
            ranks. In a ring the partner is always a neighbour, modulo group.size.
        no-modulo: An index has left the list of parts. Going around the ring, part numbers wrap:
            take them modulo group.size.
        no-tensor: Return the summed part of this rank, one tensor.
        own-part: Nothing of another rank is in the result. Add what arrives to your own part of the
            same number, and send the sum on.
        wrong-part: The sums are right, and sit on the wrong ranks. With two ranks one step leaves
            no choice; in general the sum of part r starts on rank r+1 and ends on rank r.
        rank-missing: A sum that should take up a number on every rank has missed some. W-1 steps
            are needed; in each, add your own part of the number that arrives, then send the sum.
        added-twice: A rank added its part twice. Start from a copy of one own part, and add an own
            part only to the sum that arrives.
        root-in-the-middle: One rank does all the work. In a ring each rank adds one part per step,
            and all links carry the same.
        gathers-everything: Each rank gathers all parts and keeps a slice of the sum. Only one part
            of the result stays here, so only one partial sum per step has to travel.
        too-much-traffic: A rank sends each part once, except its own: W-1 messages of one part.
            Send the sum of one part, not all of them.
        too-little-traffic: A rank sends each part once, except its own.
        not-a-ring: The bytes are right, and the parts go straight to their owner. In a ring a
            rank's only peers are its two neighbours: partial sums are handed on.
        too-many-steps: The ranks wait for one another. Send and receive at the same time, with
            exchange or with isend and irecv.
        changed-parts: parts belongs to the caller. Add into a copy or into the tensor received.
        result-changes-later: The result shares memory with something else: return a tensor of its
            own, made by clone or torch.empty_like in this call.
        call-mismatch: Sender and receiver disagree about the size: they do not have the same part
            in mind. The part that you receive is the one that your left neighbour sends.
    """),
)


def _gathers(driver, W_list, sizes_of, dtype=F32, kept=False):
    """A subcheck of ring_all_gather: sizes_of(W) lists the sizes of each case."""

    def test(bench: Bench) -> None:
        for W in W_list:
            asked = [list(sizes[:W]) for sizes in sizes_of(W)]
            lists = [
                [numbers(bench, rank, 0, (n,), dtype) for rank, n in enumerate(sizes)]
                for sizes in asked
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
    _ring_cost(f"W = {W}, x of 24 B", trace, [24 * (W - 1)] * W, 24 * W)


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
            _gathers(runs.edge_calls, (5,), lambda W: [(3, 2, 3, 2, 4)] * 2, I64, kept=True),
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        deadlock: In a ring where everybody sends first, nobody receives. exchange posts the receive
            together with the send.
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


@checker(TREE)
def check_tree_broadcast(fn, seed=None):
    """Points for `fn(x, group, root=0)`: x of every rank becomes the root's, in ceil(log2 W) steps."""


@checker(REDUCE_SCATTER)
def check_ring_reduce_scatter(fn, seed=None):
    """Points for `fn(parts, group)`: the sum over ranks of part r on rank r, around a ring."""


@checker(ALL_GATHER)
def check_ring_all_gather(fn, seed=None):
    """Points for `fn(x, group, sizes)`: the list of all ranks' x, around a ring."""
