"""Collectives beside torch.distributed, on the same inputs in the same ranks. A new collective is
one more row of ROWS.

Imported by every rank, so without pytest. Inputs are small whole numbers: sums are then exact in
every dtype, whatever the order of addition, and results are compared for equality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist

from course_lib import collectives as ours
from course_lib.collectives.ahead import ahead_ring_all_reduce
from course_lib.collectives.recursive import axis_groups, most_square

DTYPES = ("float32", "float64", "bfloat16", "int64")
OPS = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


@dataclass(frozen=True)
class Case:
    """One call. `ragged`: the parts differ in size; `strided`: the inputs are not contiguous."""

    call: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    segments: int = 1
    ragged: bool = False
    strided: bool = False
    seed: int = 0


def run_cases(group, cases):
    """Make every call, on every rank; AssertionError names the case, the rank and both results."""
    for case in cases:
        row = ROWS[case.call]
        row.check(case, group, row.function)
    return len(cases)


def same(found, wanted, case, group):
    told = f"{case} on rank {group.rank} of {group.size}"
    assert found.shape == wanted.shape and found.dtype == wanted.dtype, (
        f"{told}: got {found.dtype} {tuple(found.shape)}, expected {wanted.dtype} "
        f"{tuple(wanted.shape)}")
    assert torch.equal(found, wanted), f"{told}: got {found}, expected {wanted}"


def values(case, source, part=0, varies=True):
    """What rank `source` brings as its part number `part`; of another size each if ragged."""
    shape = list(case.shape)
    if case.ragged and shape:
        shape[0] += (3 * source * varies + 2 * part) % 4
    generator = torch.Generator().manual_seed(case.seed * 10_007 + source * 101 + part)
    whole = torch.randint(-4, 5, (*shape, 2), generator=generator).to(getattr(torch, case.dtype))
    return whole[..., 0] if case.strided else whole[..., 0].contiguous()


# -- the families: one tensor changed in place; parts of a list; and how torch does the same ---


def changed(reference, everywhere):
    """`f(x, group, ...)` changes and returns x, on every rank or on the root only."""
    def check(case, group, function):
        x = values(case, group.rank, varies=False)
        before, wanted = x.clone(), x.clone()
        reference(wanted, case, group)
        assert function(x, group, case) is x
        same(x, wanted if everywhere or group.rank == case.root else before, case, group)

    return check


def reduced(x, case, group):
    dist.all_reduce(x, OPS[case.op])
    return x.div_(group.size) if case.op == "mean" else x


def sent_from_root(x, case, group):
    dist.broadcast(x, case.root)


def gathered(root_only):
    """`f(x, group, ...)` returns the list of all ranks' x."""
    def check(case, group, function):
        x = values(case, group.rank)
        found = function(x, group, case)
        wanted = [torch.empty_like(values(case, r)) for r in range(group.size)]
        room = max(map(torch.numel, wanted))
        padded = [torch.zeros(room, dtype=x.dtype) for _ in wanted]
        dist.all_gather(padded, pad(x, room))
        same(x, values(case, group.rank), case, group)
        if root_only and group.rank != case.root:
            assert found is None
            return
        for got, like, flat in zip(found, wanted, padded, strict=True):
            same(got, cut(flat, like), case, group)
        assert found[group.rank].data_ptr() != x.data_ptr() or not x.numel(), "a part is shared"

    return check


def scattered(case, group, function):
    at_root = group.rank == case.root
    parts = [values(case, case.root, part) for part in range(group.size)]
    found = function(parts if at_root else None, group, case)
    room = max(map(torch.numel, parts))
    flat = torch.empty(room, dtype=parts[0].dtype)
    dist.scatter(flat, [pad(part, room) for part in parts] if at_root else None, case.root)
    same(found, cut(flat, parts[group.rank]), case, group)


def sum_scattered(case, group, function):
    parts = [values(case, group.rank, part, varies=False) for part in range(group.size)]
    found = function(parts, group, case)
    wanted = torch.empty_like(parts[group.rank], memory_format=torch.contiguous_format)
    dist.reduce_scatter(wanted, [part.contiguous() for part in parts], OPS[case.op])
    same(found, wanted.div_(group.size) if case.op == "mean" else wanted, case, group)
    for part, tensor in enumerate(parts):
        same(tensor, values(case, group.rank, part, varies=False), case, group)


def exchanged(case, group, function):
    parts = [values(case, group.rank, part) for part in range(group.size)]
    found = function(parts, group, case)
    like = [values(case, source, group.rank) for source in range(group.size)]
    room = max(values(case, r, p).numel() for r in range(group.size) for p in range(group.size))
    flat = [torch.empty(room, dtype=parts[0].dtype) for _ in parts]
    dist.all_to_all(flat, [pad(part, room) for part in parts])
    for got, shaped, row in zip(found, like, flat, strict=True):
        same(got, cut(row, shaped), case, group)


def all_came(case, group, function):
    """Nobody leaves before the last has come: shown by a count that every rank adds to before."""
    store = dist.distributed_c10d._get_default_store()
    key = f"barrier {case}"
    store.add(key, 1)
    function(None, group, case)
    assert store.add(key, 0) >= group.size, f"{case}: rank {group.rank} left early"


def pad(x, room):
    return torch.cat([x.reshape(-1), torch.zeros(room - x.numel(), dtype=x.dtype)])


def cut(flat, like):
    return flat[:like.numel()].view(like.shape)


def levels(group):
    """The groups within and across nodes, when the ranks stand in a rectangle."""
    return axis_groups(group, most_square(group.size))


def box(group):
    return (2, 2, 2) if group.size == 8 else (1, group.size, 1)


# -- the rows ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A collective: how it is called, how it is checked, and which fields of a Case it uses."""

    check: Callable
    function: Callable
    uses: frozenset[str]


def row(check, function, uses=""):
    return Row(check, function, frozenset(uses.split()))


ROWS = {
    "barrier": row(all_came, lambda x, g, c: ours.barrier(g)),
    "broadcast": row(changed(sent_from_root, True),
                     lambda x, g, c: ours.broadcast(x, g, root=c.root), "root"),
    "tree_broadcast": row(changed(sent_from_root, True),
                          lambda x, g, c: ours.tree_broadcast(x, g, root=c.root), "root"),
    "reduce": row(changed(reduced, False),
                  lambda x, g, c: ours.reduce(x, g, c.root, op=c.op), "root op"),
    "tree_reduce": row(changed(reduced, False),
                       lambda x, g, c: ours.tree_reduce(x, g, c.root, op=c.op), "root op"),
    "all_reduce": row(changed(reduced, True),
                      lambda x, g, c: ours.all_reduce(x, g, op=c.op), "op"),
    "naive_all_reduce": row(changed(reduced, True),
                            lambda x, g, c: ours.naive_all_reduce(x, g, op=c.op), "op"),
    "ring_all_reduce": row(
        changed(reduced, True),
        lambda x, g, c: ours.ring_all_reduce(x, g, segments=c.segments, op=c.op), "op segments"),
    "tree_all_reduce": row(changed(reduced, True),
                           lambda x, g, c: ours.tree_all_reduce(x, g, op=c.op), "op"),
    "recursive_doubling_all_reduce": row(
        changed(reduced, True),
        lambda x, g, c: ours.recursive_doubling_all_reduce(x, g, op=c.op), "op"),
    "rabenseifner_all_reduce": row(
        changed(reduced, True), lambda x, g, c: ours.rabenseifner_all_reduce(x, g, op=c.op), "op"),
    "hierarchical_all_reduce": row(
        changed(reduced, True),
        lambda x, g, c: ours.hierarchical_all_reduce(x, *levels(g), op=c.op), "op"),
    "torus_all_reduce": row(changed(reduced, True),
                            lambda x, g, c: ours.torus_all_reduce(x, g, op=c.op), "op"),
    "torus_all_reduce in three axes": row(
        changed(reduced, True), lambda x, g, c: ours.torus_all_reduce(x, g, box(g), op=c.op), "op"),
    "ahead_ring_all_reduce": row(
        changed(reduced, True),
        lambda x, g, c: ahead_ring_all_reduce(x, g, segments=c.segments, op=c.op), "op segments"),
    "scatter": row(scattered, lambda x, g, c: ours.scatter(x, g, root=c.root),
                   "root ragged strided"),
    "gather": row(gathered(True), lambda x, g, c: ours.gather(x, g, root=c.root),
                  "root ragged strided"),
    "all_gather": row(gathered(False), lambda x, g, c: ours.all_gather(x, g), "ragged strided"),
    "ring_all_gather": row(gathered(False), lambda x, g, c: ours.ring_all_gather(x, g),
                           "ragged strided"),
    "reduce_scatter": row(sum_scattered, lambda x, g, c: ours.reduce_scatter(x, g, op=c.op),
                          "op ragged strided"),
    "ring_reduce_scatter": row(
        sum_scattered,
        lambda x, g, c: ours.ring_reduce_scatter(x, g, op=c.op, segments=c.segments),
        "op segments ragged strided"),
    "all_to_all": row(exchanged, lambda x, g, c: ours.all_to_all(x, g), "ragged strided"),
    "pairwise_all_to_all": row(exchanged, lambda x, g, c: ours.pairwise_all_to_all(x, g),
                               "ragged strided"),
}
