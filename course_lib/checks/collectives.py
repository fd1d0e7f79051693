"""Exercise 01, tasks 1.1 and 1.2: tree broadcast, ring reduce-scatter. The others: a file each."""

from __future__ import annotations

from . import collective_runs as runs
from .broadcasts import broadcasts, tree_cost
from .collective_runs import BF16, F32, F64, FORBID, I64, RAGGED, SIZES, numbers
from .machinery import Bench, Subcheck, Task, checker
from .verdicts import hints_of

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
        Subcheck("ceil(log2 W) steps, x once to each rank", tree_cost(4), points=2),
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
        to-itself: A rank tries to send to itself. Count places from the root, place = (rank -
            root) % size, and turn them back into ranks: (place + root) % size.
        error-alone: A rank that is alone has x already: no step is left to do.
        only-two-ranks: 1 - rank is the other rank for two ranks only. In step k, place p < 2**k
            sends to p + 2**k, if that is below group.size.
        only-powers-of-two: It works for 2 and 4 ranks. With 3, some partner does not exist: send
            only when place + distance < group.size.
        no-wrap: It works for root 0. For another root a partner's number leaves the group: places
            are counted from the root, so a place becomes a rank again modulo group.size.
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


def _sums(driver, worlds, shapes_of, dtype=F32, kept=False):
    """A subcheck of ring_reduce_scatter: shapes_of(W) lists the parts' shapes of each case."""

    def test(bench: Bench) -> None:
        for W in worlds:
            tables = [
                [
                    [
                        numbers(bench, rank, part, shape, dtype, case)
                        for part, shape in enumerate(shapes)
                    ]
                    for rank in range(W)
                ]
                for case, shapes in enumerate(shapes_of(W))
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
    runs.expect_ring_cost(
        f"W = {W}, parts of {n} B", trace, [n - own.nbytes for own in table[0]], n
    )


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
        to-itself: A rank tries to send to itself. The neighbours are (rank + 1) % size and (rank
            - 1) % size.
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


@checker(TREE)
def check_tree_broadcast(fn, seed=None):
    """Points for `fn(x, group, root=0)`: every x becomes the root's, in ceil(log2 W) steps."""


@checker(REDUCE_SCATTER)
def check_ring_reduce_scatter(fn, seed=None):
    """Points for `fn(parts, group)`: the sum over ranks of part r on rank r, around a ring."""
