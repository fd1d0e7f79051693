"""Exercise 06, task 6.4: a unit's parameters gathered, used, freed, and gathered again."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from . import sharded
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import close
from .sharded import BYTES, ZERO, Layer, drawn
from .verdicts import hints_of, show_tensor

UNITS, DIM = 3, 12


def emptied(unit: nn.Module, group):
    """(flat, shard): the unit's parameters become views of flat [W * length], which holds nothing
    until it is gathered; shard [length] is this rank's part.
    """
    sizes = [p.numel() for p in unit.parameters()]
    length = -(-sum(sizes) // group.size)
    flat = next(unit.parameters()).data.new_zeros(group.size * length)
    start = 0
    for p, n in zip(unit.parameters(), sizes):
        view = flat[start:start + n].view_as(p)
        view.copy_(p.data)
        p.data, start = view, start + n
    shard = nn.Parameter(flat.chunk(group.size)[group.rank].clone())
    group.hold(flat, "parameter", "gathered unit")
    group.hold(shard, "parameter", "shard")
    flat.untyped_storage().resize_(0)
    group.resized(flat)
    return flat, shard


def size(flat: torch.Tensor) -> int:
    """Bytes that the vector really holds now."""
    return flat.untyped_storage().nbytes()


def gather_units(fn, group, units, x):
    return _gather(fn, group, units, x)


def gather_watched(fn, group, units, x):
    return _gather(fn, group, units, x, watched=True)


def gather_again(fn, group, units, x):
    """In a rank: a forward, the unit let go and gathered again, the backward; its gradients."""
    made = []
    for unit in units:
        flat, shard = emptied(unit, group)
        room = flat.detach()  # the storage of the parameters, whatever becomes of flat
        reshard = fn(flat, shard, group)
        if size(room) < room.numel() * BYTES:
            return [["empty", None]] * len(units)
        loss = unit(x).sum()
        reshard()
        again = fn(flat, shard, group)
        if size(room) < room.numel() * BYTES:
            return [["empty", None]] * len(units)
        loss.backward()
        again()
        made.append(["gradient", sharded.gradient(unit)])
    return made


def _gather(fn, group, units, x, watched=False):
    """In a rank, per unit: its vector when gathered, its output, bytes held afterwards, the shard
    before and after. `watched`: keep none of it, so that what is held is what fn holds.
    """
    pairs = [emptied(unit, group) for unit in units]
    before = [shard.detach().clone() for _, shard in pairs]
    group.mark("before")
    seen = []
    for unit, (flat, shard) in zip(units, pairs, strict=True):
        room = flat.detach()
        reshard = fn(flat, shard, group)
        full = size(room) == room.numel() * BYTES
        if not full or not callable(reshard):
            return [["empty" if not full else "no-reshard", type(reshard).__name__]] * len(units)
        whole = room.clone()
        with torch.no_grad():
            out = unit(x)
        reshard()
        seen.append(["seen", *([None, None] if watched else [whole, out]), size(room)])
        del reshard, whole, out
    group.mark("after")
    return [[*s, b, shard] for s, b, (_, shard) in zip(seen, before, pairs, strict=True)]


def _run(bench: Bench, W: int, driver=gather_units, record="calls"):
    dim = 5 if driver is gather_units else DIM
    units = [drawn(bench, Layer(dim), 64, dim, i) for i in range(UNITS)]
    x = torch.randn(2, dim, generator=bench.generator(64, W)).double()
    return units, x, sharded.run(bench, W, driver, [(units, x)] * W, record)


def _whole(*worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            units, x, outcome = _run(bench, W)
            for rank, values in enumerate(outcome.values):
                for i, (unit, seen) in enumerate(zip(units, values, strict=True)):
                    _judge(f"W = {W}, rank {rank}, unit {i}", rank, W, unit, x, seen)

    return test


def _judge(where: str, rank: int, W: int, unit, x, seen) -> None:
    flat = nn.utils.parameters_to_vector(unit.parameters()).detach()
    length = -(-len(flat) // W)
    flat = F.pad(flat, (0, W * length - len(flat)))
    if seen[0] == "empty":
        raise Wrong("still-empty", f"{where}: flat's storage has no room for {len(flat)} elements "
                    "after the call")
    if seen[0] == "no-reshard":
        raise Wrong("no-reshard", f"{where}: expected a function that frees the unit, got a "
                    f"{seen[1]}")
    _, whole, out, left, before, after = seen
    if not torch.equal(whole, flat):
        parts = flat.view(W, length)
        verdict = "wrong-value"
        if torch.equal(whole.view(W, length)[rank], parts[rank]) and W > 1:
            verdict = "own-shard"
        elif sorted(whole.tolist()) == sorted(flat.tolist()):
            verdict = "wrong-order"
        raise Wrong(verdict, f"{where}: expected flat {show_tensor(flat)}, got "
                    f"{show_tensor(whole)}")
    if not torch.equal(before, after):
        raise Wrong("changed-shard", f"{where}: the shard has changed")
    if not close(out, unit(x).detach()):
        raise Wrong("wrong-value", f"{where}: flat is right, and the module computes with other "
                    "numbers: copy into flat, do not replace it")
    if left:
        raise Wrong("not-freed", f"{where}: expected flat's storage to hold 0 B after reshard(), "
                    f"got {left} B")


def _kept(bench: Bench) -> None:
    """Nothing more is held after all units than before the first."""
    W = 4
    units, _, outcome = _run(bench, W, gather_watched, record=True)
    unit = sum(p.numel() for p in units[0].parameters()) * BYTES
    for rank in range(W):
        if outcome.values[rank][0][0] != "seen":
            raise Wrong("still-empty", f"W = {W}, rank {rank}: nothing was gathered")
        before, after = (sum(outcome.trace.held_at(rank, m).values()) for m in ("before", "after"))
        kept = after - before - sum(v[3] for v in outcome.values[rank])
        if kept > unit:  # of three units
            raise Wrong("hidden-copy", f"W = {W}, rank {rank}: {UNITS} units of {unit} B gathered "
                        f"and freed one by one; {kept} B more are held afterwards than before")


def _again(bench: Bench) -> None:
    W = 2
    units, x, outcome = _run(bench, W, gather_again)
    for rank, values in enumerate(outcome.values):
        for i, (unit, (kind, got)) in enumerate(zip(units, values, strict=True)):
            unit.zero_grad()
            unit(x).sum().backward()
            if kind == "empty" or not close(got, sharded.gradient(unit)):
                raise Wrong("not-gathered-again", f"W = {W}, rank {rank}, unit {i}: the backward "
                            "pass after a second unshard gives other gradients")
    _sent(outcome, units, W, 2)


def _traffic(bench: Bench) -> None:
    units, _, outcome = _run(bench, 4)
    _sent(outcome, units, 4, 1)


def _sent(outcome, units, W: int, times: int) -> None:
    length = -(-sum(p.numel() for p in units[0].parameters()) // W)
    want = times * UNITS * (W - 1) * length * BYTES
    for rank, sent in enumerate(outcome.bytes_sent()):
        if sent != want:
            verdict = "too-much-traffic" if sent > want else "too-little-traffic"
            raise Wrong(verdict, f"W = {W}, rank {rank}: {UNITS} units unsharded {times}x; "
                        f"expected {want} B sent, W-1 shards each time, got {sent} B")


UNSHARD = Task("6.4", "unshard", "06_zero", (
    Subcheck("one rank and two ranks: whole inside, nothing held afterwards", _whole(1, 2),
             gate=True),
    Subcheck("no copy kept elsewhere", _kept),
    Subcheck("gathered again for the backward pass", _again),
    Subcheck("three and four ranks", _whole(3, 4)),
    Subcheck("W-1 shards sent", _traffic),
), forbid=TORCH_COLLECTIVES + ZERO, hints=hints_of("""
    forbidden: Write it from all_gather of course_lib.collectives and storage.resize_.
    no-reshard: Define a function inside unshard that empties the storage again, and return it,
        without calling it.
    still-empty: flat's storage holds 0 bytes when you get it. First make room:
        flat.untyped_storage().resize_(flat.numel() * flat.element_size()). A new tensor does not
        help: the module's parameters are views of this storage.
    too-little-room: The storage has got some room, and not enough. resize_ counts bytes, not
        elements: it needs flat.numel() times flat.element_size() of them.
    own-shard: Only this rank's part is there. all_gather gives the list of all ranks' shards.
    wrong-order: The shards are there in another order. Part r of flat is rank r's shard.
    changed-shard: The shard is what this rank keeps. Read it only.
    not-freed: flat still holds the whole unit. Overwriting frees nothing, and dropping a reference
        neither, since the parameters are views: storage.resize_(0) does.
    hidden-copy: flat is empty, and the gathered numbers are still alive elsewhere: in a list, a
        global or a default argument.
    not-gathered-again: autograd has kept views of the weights, and finds in them what the second
        unshard puts there. Is the second call equal to the first?
    too-much-traffic: An all-gather sends W-1 shards per rank. An all-reduce or a broadcast of the
        whole vector sends more.
    too-little-traffic: Every call gathers. A unit that comes from a copy was never freed.
    wrong-value: Copy part r of all_gather(...) into part r of flat: flat.chunk(W) are views.
"""))


@checker(UNSHARD)
def check_unshard(fn, seed=None):
    """Points for `fn(flat, shard, group)`: fills flat from all shards, returns what frees it."""
