"""Exercise 01, task 1.6: a broadcast that beats the tree for large vectors."""

from __future__ import annotations

from . import collective_runs as runs
from .broadcasts import broadcasts, faster_than_tree
from .collective_runs import BF16, F32, F64, FORBID, I64, SIZES
from .machinery import Subcheck, Task, checker
from .verdicts import hints_of

FAST_BROADCAST = Task(
    "1.6",
    "fast_broadcast",
    "01_collectives",
    (
        Subcheck("one rank", broadcasts(runs.value_calls, [((12,), F32)], (1,))),
        Subcheck(
            "two to four ranks, root 0",
            broadcasts(runs.value_calls, [((12,), F32)], SIZES),
            gate=True,
        ),
        Subcheck(
            "any root, sizes that W does not divide",
            broadcasts(runs.more_calls, [((n,), F32) for n in (11, 7, 2)], (3,), True),
        ),
        Subcheck("4 MiB in less time than the tree, on laptop()", faster_than_tree(5), points=2),
        Subcheck(
            "any shape and dtype, x changed in place",
            broadcasts(
                runs.edge_calls, [((5, 3), I64), ((), F64), ((0,), F32), ((9,), BF16)], (5,), True
            ),
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        deadlock: Write down who sends what to whom. If it hangs only for another root, count from
            the root: place = (rank - root) % size, and back with (place + root) % size.
        to-itself: A rank tries to send to itself. Count places from the root, place = (rank -
            root) % size, and turn them back into ranks: (place + root) % size.
        error-alone: A rank that is alone has x already, and sends nothing.
        only-two-ranks: 1 - rank is the other rank for two ranks only.
        only-powers-of-two: A partner such as rank ^ distance does not exist for every number of
            ranks.
        no-modulo: An index has left a list. x.view(-1).tensor_split(size) always makes size chunks,
            some of them empty; torch.chunk may make fewer.
        no-wrap: It works for root 0. For another root a partner's number leaves the group: places
            are counted from the root, so a place becomes a rank again modulo group.size.
        no-tensor: Return x at the end, on every rank.
        not-in-place: x itself has to change. Receive into chunks of x.view(-1), which share its
            memory.
        not-reached: This rank still has its old x.
        wrong-root: The root is taken to be another rank than it is: count places from the root.
        changed-x: The root's own x must stay as it is.
        phase-missing: Some chunks have arrived, the rest of x is as before. After the scatter every
            rank holds one chunk; the all-gather of the chunks is missing, or stops too early.
        tail-forgotten: The last elements never travel. n // size cuts off the rest; tensor_split
            makes the first chunks one element longer instead.
        wrong-value: Some chunks sit in the wrong place. After the scatter, which rank holds which
            chunk? The all-gather has to start from exactly that.
        as-the-tree: Somebody sends all of x more than once, as in the tree: with log2 W levels that
            takes log2 W times n. Cut x into chunks; the root needs to send each chunk only once.
        root-sends-to-all: The root sends W-1 times n bytes. If it sends each chunk once, to one
            rank, the others can pass chunks among themselves at the same time.
        no-overlap: Nobody sends too much, and still one waits for the other. Pass a chunk on as
            soon as it is there, while the next one arrives: exchange, or isend and irecv.
        too-many-pieces: Each message costs its latency, and there are too many. Chunks of n / size,
            or 8 to 32 pieces, are enough.
    """),
)


@checker(FAST_BROADCAST)
def check_fast_broadcast(fn, seed=None):
    """Points for `fn(x, group, root=0)`: a broadcast that beats the tree for large x."""
