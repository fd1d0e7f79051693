"""What the checks of exercise 01 share: calling the learner's function, and reading what it cost.

A case is one call: the first argument, then what follows the group. The drivers differ by name
only, because the bench keeps one run per driver and number of ranks.
"""

from __future__ import annotations

import math
from itertools import product

import torch

from .. import collectives
from ..launch.errors import RankFailure
from ..machine import Machine
from ..trace import SENDS, Event, Trace
from ..virtual_time import replay
from . import verdicts
from .machinery import Bench, Outcome, Wrong
from .probe import TORCH_COLLECTIVES, Other
from .verdicts import show_tensor

FORBID = (
    TORCH_COLLECTIVES
    + ("course_lib.collectives.many.pass_around",)
    + tuple(f"course_lib.collectives.{name}" for name in collectives.__all__ if name != "barrier")
)
STEPS = Machine("steps", 1.0, math.inf, flops=math.inf, memory_bandwidth=math.inf)
POSTING = Event("compute", label="post", seconds=1e-6)
SPOILED = 77
SIZES = (2, 4, 3)  # 4 before 3: tells "two ranks only" from "powers of two only"
F32, F64, I64, BF16 = torch.float32, torch.float64, torch.int64, torch.bfloat16
RAGGED = ((2, 0, 5, 3, 1), (0, 4, 1, 2, 2))


# -- in the ranks --------------------


def value_calls(fn, group, cases):
    return _calls(fn, group, cases)


def more_calls(fn, group, cases):
    return _calls(fn, group, cases)


def cost_calls(fn, group, cases):
    return _calls(fn, group, cases)


def edge_calls(fn, group, cases):
    return _calls(fn, group, cases)


def _calls(fn, group, cases):
    """For each case: the result, the first argument after the call, and the result once all calls
    are over and all first arguments have been overwritten.
    """
    results, seen = [], []
    for first, *rest in cases:
        results.append(fn(first, group, *rest))
        seen.append([_snapshot(results[-1]), _snapshot(first)])
    for first, *_ in cases:
        for tensor in first if isinstance(first, list) else [first]:
            tensor.fill_(SPOILED)
    return [[*kept, result] for kept, result in zip(seen, results)]


def _snapshot(value):
    if isinstance(value, (list, tuple)):
        return [_snapshot(item) for item in value]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


# -- in the checking process --------------------


def run(
    bench: Bench, world_size: int, driver, cases: list[list[tuple]], index="no-modulo", absent=""
) -> Outcome:
    """Outcome.values[rank][case] is [result, first argument afterwards, result at the end].

    Verdicts: `index` for an index beyond the end of a list, `absent` for a partner that is no rank.
    """
    try:
        return bench.run(world_size, driver, [(mine,) for mine in cases])
    except RankFailure as failure:
        verdict, message = verdicts.of(failure)
        if "must be a rank of the group" in message and world_size > 2:
            powers = "only-two-ranks" if world_size == 4 else "only-powers-of-two"
            verdict = absent or powers
        elif "a rank sends only to others" in message:
            verdict = "error-alone" if world_size == 1 else "to-itself"
        elif failure.kind == "IndexError":
            three = driver is value_calls and world_size == 3  # 2 and 4 ranks have passed
            verdict = "only-powers-of-two" if three else index
        elif _other_dtype(message):
            verdict = "wrong-dtype"
        else:
            raise
        raise Wrong(verdict, message) from None


def _other_dtype(message: str) -> bool:
    """Whether the two sides of a message have the same number of elements, of different dtypes."""
    match verdicts.disagreement(message):
        case (sent, its, received, other):
            return its != other and sent * other.itemsize == received * its.itemsize
    return False


def numbers(
    bench: Bench, rank: int, part: int, shape, dtype=torch.float32, case: int = 0
) -> torch.Tensor:
    """What `rank` brings as its part: first (part + 1) * 10^rank, then random numbers.

    The first digits of a sum say which ranks are in it, and how often. All sums are exact.
    """
    draw = bench.generator(rank, part, case, *shape)
    made = torch.randint(1, 9999, tuple(shape), generator=draw)
    if made.numel():
        made.view(-1)[0] = (part + 1) * 10**rank
    return made.to(dtype)


def same(got, want: torch.Tensor) -> bool:
    return (
        isinstance(got, torch.Tensor)
        and (got.shape, got.dtype) == (want.shape, want.dtype)
        and torch.equal(got, want)
    )


def expect_tensor(where: str, got) -> None:
    if not isinstance(got, torch.Tensor):
        kind = got.kind if isinstance(got, Other) else type(got).__name__
        raise Wrong("no-tensor", f"{where}: expected a tensor, got a {kind}")


def difference(where: str, got: torch.Tensor, want: torch.Tensor) -> str:
    text = f"{where}: expected {show_tensor(want)}, got {show_tensor(got)}"
    return text if got.dtype == want.dtype else f"{text} of dtype {str(got.dtype)[6:]}"


def explain_sum(got: torch.Tensor, table: list[list[torch.Tensor]]):
    """(part, [how often each rank's tensor is in it]) when `got` is such a sum, otherwise None.

    table[rank][part] is what each rank brought. Parts of one element fit too easily to be trusted.
    """
    counts = torch.tensor(list(product(range(4), repeat=len(table))), dtype=torch.float64)
    for part, like in enumerate(table[0]):
        if like.shape != got.shape or like.numel() < 2:
            continue
        brought = torch.stack([mine[part].reshape(-1).double() for mine in table])
        fits = (counts @ brought == got.reshape(-1).double()).all(dim=1).nonzero()
        if len(fits):
            return part, [int(n) for n in counts[fits[0, 0]]]
    return None


def judge_sum(where: str, rank: int, got, table, part: int) -> None:
    """Raise Wrong unless `got` is the sum over ranks of that part; `rank` is who holds it."""
    want = sum(mine[part] for mine in table)
    expect_tensor(where, got)
    if same(got, want):
        return
    text, found = difference(where, got, want), explain_sum(got, table)
    if found is None:
        raise Wrong("wrong-value", text)
    other, counts = found
    alone = [int(r == rank) for r in range(len(table))]
    if counts == alone:
        raise Wrong("own-part", f"{text}, which is what rank {rank} itself brought")
    if other != part and min(counts) == max(counts) == 1:
        raise Wrong("wrong-part", f"{text}, which is the sum of part {other}")
    words = ", ".join(f"rank {r}: {n} times" for r, n in enumerate(counts) if n != 1)
    verdict = "added-twice" if max(counts) > 1 else "rank-missing"
    raise Wrong(verdict, f"{text}; that is part {other} with {words}, the others once")


def steps(trace: Trace) -> int:
    """Steps on the longest path: each message takes one, a rank sends and receives one at a time.

    Posting a send takes a moment, so that sends started together leave in the program's order.
    """
    programs = {
        key: [
            e for event in events for e in ((POSTING, event) if event.kind in SENDS else (event,))
        ]
        for key, events in trace.programs.items()
    }
    try:
        return round(replay(Trace(trace.world_size, programs), STEPS).makespan)
    except ValueError as loose:
        raise Wrong("unmatched-message", str(loose)) from None


def messages(trace: Trace) -> list[tuple[int, int, int]]:
    """(from, to, bytes) of every message."""
    return [
        (rank, e.peer, e.nbytes)
        for rank in range(trace.world_size)
        for e in trace.events(rank)
        if e.kind in SENDS
    ]


def expect_no_hub(where: str, trace: Trace) -> None:
    """Raise Wrong when every message goes to one rank or comes from it."""
    sent = messages(trace)
    for hub in range(trace.world_size):
        if sent and all(hub in pair[:2] for pair in sent):
            received = sum(nbytes for _, to, nbytes in sent if to == hub)
            raise Wrong(
                "root-in-the-middle",
                f"{where}: every message goes to rank {hub} or comes from it; it receives "
                f"{received} B and sends {trace.bytes_sent(hub)} B",
            )


def expect_bytes(
    where: str, trace: Trace, least: list[int], spare: int = 0, everything: int = 0
) -> None:
    """Raise Wrong unless each rank sends `least[rank]` bytes, or up to `spare` more.

    everything: bytes that a rank sends when it hands all it has to every other rank.
    """
    for rank, want in enumerate(least):
        got = trace.bytes_sent(rank)
        if want <= got <= want + spare:
            continue
        text = f"{want} B" if not spare else f"{want} to {want + spare} B"
        verdict = "too-much-traffic" if got > want else "too-little-traffic"
        if everything and got >= everything:
            verdict = "gathers-everything"
        raise Wrong(verdict, f"{where}, rank {rank}: expected {text} sent, got {got} B")


def expect_ring(where: str, trace: Trace) -> None:
    """Raise Wrong when a message goes to a rank that is no neighbour."""
    for rank, to, nbytes in messages(trace):
        if (to - rank) % trace.world_size not in (1, trace.world_size - 1):
            raise Wrong(
                "not-a-ring",
                f"{where}, rank {rank}: expected messages to its neighbours "
                f"only, got one of {nbytes} B to rank {to}",
            )


def expect_steps(where: str, trace: Trace, most: int) -> None:
    got = steps(trace)
    if got > most:
        raise Wrong("too-many-steps", f"{where}: expected at most {most} steps, got {got}")


def expect_kept(where: str, name: str, before, after) -> None:
    """Raise Wrong when an input was changed: a tensor, or a list of them."""
    pairs = zip(before, after) if isinstance(before, list) else [(before, after)]
    for number, (was, now) in enumerate(pairs):
        which = f"{name}[{number}]" if isinstance(before, list) else name
        if not same(now, was):
            raise Wrong(
                f"changed-{name}",
                f"{where}: expected {which} to stay {show_tensor(was)}, "
                f"got {show_tensor(now)} afterwards",
            )


def expect_own_storage(where: str, name: str, now, late) -> None:
    """Raise Wrong when a result changed as its input was overwritten, or a later call was made."""
    pairs = zip(now, late) if isinstance(now, list) else [(now, late)]
    for number, (was, then) in enumerate(pairs):
        if not same(then, was):
            which = f"entry {number} of the result" if isinstance(now, list) else "the result"
            raise Wrong(
                "result-changes-later",
                f"{where}: {which} was {show_tensor(was)}, and became {show_tensor(then)} "
                f"when {name} was overwritten after the call, or the function called again",
            )


def expect_ring_cost(where: str, trace, want: list[int], n: int) -> None:
    W = trace.world_size
    expect_no_hub(where, trace)
    expect_bytes(where, trace, want, everything=2 * n)
    expect_ring(where, trace)
    expect_steps(where, trace, W - 1)
