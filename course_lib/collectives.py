"""Collectives, built from send and receive.

W = group.size; n = bytes of the tensor, or of all parts together; "sent" is what one rank sends.

==================  =============  ======================  ==================================
call                changes        returns                 cost per rank
==================  =============  ======================  ==================================
barrier(g)          nothing        None                    ceil(log2 W) steps, 1 B each
broadcast(x, g)     x off root     x                       root: W-1 steps, (W-1)n sent
tree_broadcast      x off root     x                       <= ceil(log2 W) steps of n
scatter(parts, g)   nothing        part r of root's list   root: W-1 steps, (W-1)/W n sent
gather(x, g)        nothing        root: list, else None   root: W-1 steps, receives the rest
reduce(x, g)        x of the root  x                       root: W-1 steps, receives (W-1)n
tree_reduce         x of the root  x                       <= ceil(log2 W) steps of n
all_gather(x, g)    nothing        list, one per rank      as ring_all_gather
ring_all_gather     nothing        list, one per rank      W-1 steps, (W-1)/W n sent
reduce_scatter      nothing        sum of all parts r      as ring_reduce_scatter
ring_reduce_scatter nothing        sum of all parts r      W-1 steps, (W-1)/W n sent
all_reduce(x, g)    x              x                       as ring_all_reduce
ring_all_reduce     x              x                       2(W-1) steps, 2(W-1)/W n sent
naive_all_reduce    x              x                       root: 2(W-1) steps, (W-1)n sent
all_to_all          nothing        list, part r of each    as pairwise_all_to_all
pairwise_all_to_all nothing        list, part r of each    W-1 steps, n minus the own part
==================  =============  ======================  ==================================

A tensor that is changed must be contiguous; others may have any strides. Tensors may have any
shape, any dtype, and no elements at all. Parts may be ragged: in scatter, gather, all_gather and
all_to_all shapes may differ from part to part and from rank to rank; in reduce_scatter from part to
part, equal on all ranks. op is "sum", "mean" (floating point only) or "max". root is a rank of the
group. All take `name=` (see calls.py). """

from __future__ import annotations

import torch

from .calls import add_into, collective, scratch
from .group import Group
from .shapes import empty, share_shapes

OPS = ("sum", "mean", "max")


@collective()
def barrier(group: Group) -> None:
    """After: every rank knows that all ranks have called it.

    Cost per rank: ceil(log2 W) steps of one byte: in step k each rank hears from the rank 2^k
    behind it, and so, at second hand, from 2^(k+1) ranks (dissemination barrier; Hensgen, Finkel
    and Manber 1988). """
    token, distance = torch.zeros(1, dtype=torch.uint8, device=group.device), 1
    while distance < group.size:
        to, frm = (group.rank + distance) % group.size, (group.rank - distance) % group.size
        group.exchange(token, to, scratch(token, group), frm)
        distance *= 2


# -- one to many, many to one ----------------------------------------------------------------------


@collective("shape", "root")
def broadcast(x: torch.Tensor, group: Group, root: int = 0) -> torch.Tensor:
    """After: x of every rank equals the root's x (changed in place off the root).

    Cost: the root sends n bytes to each of the W-1 others, one after the other.
    """
    _check(x, group, root=root)
    if group.rank == root:
        for to in range(group.size):
            if to != root:
                group.send(x, to)
    else:
        group.recv(x, root)
    return x


@collective("shape", "root")
def tree_broadcast(x: torch.Tensor, group: Group, root: int = 0) -> torch.Tensor:
    """After: as broadcast. In step k, the 2^k ranks that have x send it to 2^k that have not.

    Cost: ceil(log2 W) steps of n bytes; the root sends ceil(log2 W) n (binomial tree, as MPICH's).
    """
    _check(x, group, root=root)
    W, place = group.size, (group.rank - root) % group.size
    distance = 1
    while distance < W:
        if place < distance and place + distance < W:
            group.send(x, (group.rank + distance) % W)
        elif distance <= place < 2 * distance:
            group.recv(x, (group.rank - distance) % W)
        distance *= 2
    return x


@collective("root")
def scatter(parts: list[torch.Tensor] | None, group: Group, root: int = 0) -> torch.Tensor:
    """After: rank r holds part r of the root's list; the others pass None (or anything).

    Cost: the root sends each part but its own, in W-1 steps.
    """
    _check_root(root, group)
    at_root = group.rank == root
    parts = _check_parts(parts, group) if at_root else []
    specs = share_shapes(parts, group, of=[root])[root]
    if not at_root:
        return group.recv(empty(specs[group.rank], group), root)
    for to in range(group.size):
        if to != root:
            group.send(parts[to], to)
    return parts[root].clone()


@collective("root")
def gather(x: torch.Tensor, group: Group, root: int = 0) -> list[torch.Tensor] | None:
    """After: the root holds the list of all ranks' x; the others get None.

    Cost: the root receives each x but its own, in W-1 steps; the others send n bytes.
    """
    _check_root(root, group)
    specs = share_shapes([x], group, of=None if group.rank == root else [])
    if group.rank != root:
        return group.send(x, root)
    return [x.clone() if frm == root else group.recv(empty(specs[frm][0], group), frm)
            for frm in range(group.size)]


@collective("shape", "op", "root")
def reduce(x: torch.Tensor, group: Group, root: int = 0, op: str = "sum") -> torch.Tensor:
    """After: x of the root (changed in place) is the sum over ranks; the others' x is as before.

    Cost: the root receives n bytes from each of the W-1 others, one after the other.
    """
    _check(x, group, op, root)
    if group.rank != root:
        group.send(x, root)
        return x
    incoming = scratch(x, group)
    for frm in range(group.size):
        if frm != root:
            add_into(x, group.recv(incoming, frm), group, op)
    return _mean(x, group, op)


@collective("shape", "op", "root")
def tree_reduce(x: torch.Tensor, group: Group, root: int = 0, op: str = "sum") -> torch.Tensor:
    """After: as reduce. The binomial tree of tree_broadcast, run backwards: in each step half of
    the ranks that still hold a partial sum send it on.

    Cost: ceil(log2 W) steps of n bytes; no rank receives more than ceil(log2 W) n.
    """
    _check(x, group, op, root)
    W, place = group.size, (group.rank - root) % group.size
    partial = x if place == 0 else group.hold(x.clone(), "buffer")
    distance = 1 << max(0, (W - 1).bit_length() - 1)
    while distance:
        if place < distance and place + distance < W:
            incoming = group.recv(scratch(x, group), (group.rank + distance) % W)
            add_into(partial, incoming, group, op)
        elif distance <= place < 2 * distance:
            group.send(partial, (group.rank - distance) % W)
        distance //= 2
    return _mean(x, group, op) if place == 0 else x


# -- many to many ----------------------------------------------------------------------------------


@collective()
def ring_all_gather(x: torch.Tensor, group: Group) -> list[torch.Tensor]:
    """After: every rank holds the list of all ranks' x. Each part travels once around the ring.

    Cost per rank: W-1 steps, (W-1)/W n bytes sent, where n is the bytes of all parts together.
    """
    specs = share_shapes([x], group)
    parts = [x.clone(memory_format=torch.contiguous_format) if rank == group.rank
             else empty(specs[rank][0], group) for rank in range(group.size)]
    _pass_around([[part] for part in parts], group)
    return parts


@collective()
def all_gather(x: torch.Tensor, group: Group) -> list[torch.Tensor]:
    """After: every rank holds the list of all ranks' x. Cost: as ring_all_gather."""
    return ring_all_gather(x, group)


@collective("shapes", "op")
def ring_reduce_scatter(parts: list[torch.Tensor], group: Group, op: str = "sum", segments: int = 1
                        ) -> torch.Tensor:
    """After: rank r holds the sum over ranks of part r. `parts` is one tensor per rank, left as it
    is.

    A partial sum of part r starts at rank r+1, visits every rank, takes up its part r, and ends at
    rank r.

    Cost per rank: (W-1) * segments steps, (W-1)/W n bytes sent.
    """
    parts = _check_parts(parts, group, op)
    r, W = group.rank, group.size
    partial = group.hold(parts[(r - 1) % W].clone(memory_format=torch.contiguous_format), "buffer")
    for step in range(W - 1):
        into = parts[(r - step - 2) % W]
        incoming = scratch(into, group)
        for out, piece, own in zip(*(_cut(t, segments) for t in (partial, incoming, into))):
            add_into(group.exchange(out, (r + 1) % W, piece, (r - 1) % W), own, group, op)
        partial = incoming
    return _mean(partial, group, op)


@collective("shapes", "op")
def reduce_scatter(parts: list[torch.Tensor], group: Group, op: str = "sum") -> torch.Tensor:
    """After: rank r holds the sum over ranks of part r. Cost: as ring_reduce_scatter."""
    return ring_reduce_scatter(parts, group, op)


@collective()
def pairwise_all_to_all(parts: list[torch.Tensor], group: Group) -> list[torch.Tensor]:
    """After: rank r holds part r of every rank's list, by rank. The transpose of a table of parts.

    Cost per rank: W-1 steps; in step s it sends to the rank s ahead and hears from the one s
    behind. Sent: n bytes minus the own part (pairwise exchange, as MPICH's for long messages). """
    parts = _check_parts(parts, group)
    specs, r, W = share_shapes(parts, group), group.rank, group.size
    received = [parts[r].clone() if rank == r else empty(specs[rank][r], group)
                for rank in range(W)]
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        group.exchange(parts[to], to, received[frm], frm)
    return received


@collective()
def all_to_all(parts: list[torch.Tensor], group: Group) -> list[torch.Tensor]:
    """After: rank r holds part r of every rank's list. Cost: as pairwise_all_to_all."""
    return pairwise_all_to_all(parts, group)


# -- all-reduce ------------------------------------------------------------------------------------


@collective("shape", "op")
def all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks. Cost: as ring_all_reduce."""
    return ring_all_reduce(x, group, op=op)


@collective("shape", "op")
def naive_all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks: reduce to rank 0, then
    broadcast.

    Cost: rank 0 receives (W-1)n bytes and sends (W-1)n, in 2(W-1) steps; the others send and
    receive n each. """
    reduce(x, group, 0, op)
    return broadcast(x, group, 0)


@collective("shape", "op")
def ring_all_reduce(x: torch.Tensor, group: Group, segments: int = 1,
                    op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks: reduce-scatter, then
    all-gather.

    x is cut into W chunks of equal size, the first ones an element longer where W does not divide
    it. With segments > 1 every chunk travels in that many pieces.

    Cost per rank: 2(W-1) * segments steps, 2(W-1)/W n bytes sent (Patarasuk and Yuan 2009,
    "Bandwidth optimal all-reduce algorithms for clusters of workstations"). """
    _check(x, group, op)
    if not isinstance(segments, int) or segments < 1:
        raise ValueError(f"segments={segments!r}: must be a whole number of at least 1")
    chunks = list(x.view(-1).tensor_split(group.size))
    chunks[group.rank].copy_(ring_reduce_scatter(chunks, group, op, segments))
    _pass_around([_cut(chunk, segments) for chunk in chunks], group)
    return x


def _pass_around(chunks: list[list[torch.Tensor]], group: Group) -> None:
    """After: every rank holds every chunk; before, rank r had only chunk r. A chunk is a list of
    pieces.
    """
    r, W = group.rank, group.size
    for step in range(W - 1):
        send, recv = (r - step) % W, (r - step - 1) % W
        for out, into in zip(chunks[send], chunks[recv]):
            group.exchange(out, (r + 1) % W, into, (r - 1) % W)


def _cut(chunk: torch.Tensor, segments: int) -> list[torch.Tensor]:
    return [chunk] if segments == 1 else list(chunk.reshape(-1).tensor_split(segments))


def _mean(x: torch.Tensor, group: Group, op: str) -> torch.Tensor:
    return x.div_(group.size) if op == "mean" else x


# -- what is refused -------------------------------------------------------------------------------


def _check(x: torch.Tensor, group: Group, op: str = "sum", root: int = 0) -> None:
    """Refuse what would hang or give nonsense, naming the argument, its value and the rule."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x={type(x).__name__}: must be a tensor")
    if not x.is_contiguous():
        raise ValueError(f"x has shape {tuple(x.shape)} and strides {x.stride()}: must be "
                         "contiguous, because it "
                         "is changed in place; call it on x.contiguous() and copy the result back")
    _check_op(op, x)
    _check_root(root, group)


def _check_op(op: str, x: torch.Tensor) -> None:
    if op not in OPS:
        raise ValueError(f"op={op!r}: must be one of {', '.join(OPS)}")
    if op == "mean" and not (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"op='mean' on {x.dtype}: a mean needs a floating-point tensor")


def _check_root(root: int, group: Group) -> None:
    if not isinstance(root, int) or not 0 <= root < group.size:
        raise ValueError(f"root={root!r}: must be a rank of the group, 0..{group.size - 1}")


def _check_parts(parts, group: Group, op: str = "sum") -> list[torch.Tensor]:
    if not isinstance(parts, (list, tuple)) or not all(isinstance(p, torch.Tensor) for p in parts):
        raise TypeError(f"parts={type(parts).__name__}: must be a list of tensors, one per rank")
    if len(parts) != group.size:
        raise ValueError(f"parts has {len(parts)} tensors: must have one per rank, {group.size} in "
                         "this group")
    for part in parts:
        _check_op(op, part)
    return [part.contiguous() for part in parts]
