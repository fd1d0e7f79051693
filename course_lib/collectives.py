"""Collectives, built from send and receive.

W = group.size, n = bytes of the tensor (or of all parts together). "sent" is what one rank sends.

================  =====================  =======  ===============================
call              after it, every rank   changes  cost per rank
================  =====================  =======  ===============================
barrier(g)        knows that all came    nothing  ceil(log2 W) steps, 1 B each
broadcast(x, g)   holds the root's x     x        root: W-1 steps, (W-1)n sent
all_reduce(x, g)  holds the sum          x        as ring_all_reduce
ring_all_reduce   the same               x        2(W-1) steps, 2(W-1)/W n sent
naive_all_reduce  the same               x        root: 2(W-1) steps, (W-1)n sent
================  =====================  =======  ===============================

All return x (barrier: None). x may have any number of dimensions and must be contiguous; op is
"sum", "mean" or "max" ("mean" needs a floating-point x); root is a rank of the group. All take
`name=`, see calls.py. """

from __future__ import annotations

import torch

from .calls import add_into, collective, scratch
from .group import Group

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


@collective("shape", "op")
def all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks. Cost: as ring_all_reduce."""
    return ring_all_reduce(x, group, op=op)


@collective("shape", "op")
def naive_all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks: everything to rank 0, and
    back.

    Cost: rank 0 receives (W-1)n bytes and sends (W-1)n, in 2(W-1) steps; the others send and
    receive n each. """
    _check(x, group, op)
    if group.rank == 0:
        incoming = scratch(x, group)
        for frm in range(1, group.size):
            add_into(x, group.recv(incoming, frm), group, op)
        if op == "mean":
            x.div_(group.size)
    else:
        group.send(x, 0)
    return broadcast(x, group, 0)


@collective("shape", "op")
def ring_all_reduce(x: torch.Tensor, group: Group, segments: int = 1,
                    op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks.

    x is cut into W chunks. In W-1 steps partial sums travel once around the ring, after which rank
    r holds the sum of chunk r (reduce-scatter); in W-1 more the finished chunks do (all-gather).
    With segments > 1 every chunk travels in that many pieces.

    Cost per rank: 2(W-1) * segments steps, 2(W-1)/W n bytes sent (Patarasuk and Yuan 2009,
    "Bandwidth optimal all-reduce algorithms for clusters of workstations"). """
    _check(x, group, op)
    if not isinstance(segments, int) or segments < 1:
        raise ValueError(f"segments={segments!r}: must be a whole number of at least 1")
    chunks = [chunk.tensor_split(segments) for chunk in x.view(-1).tensor_split(group.size)]
    r, W = group.rank, group.size
    incoming = [scratch(piece, group) for piece in chunks[0]] if W > 1 else []
    for step in range(W - 1):
        send, recv = (r - step - 1) % W, (r - step - 2) % W
        for out, into, buffer in zip(chunks[send], chunks[recv], incoming):
            got = group.exchange(out, (r + 1) % W, buffer[:into.numel()], (r - 1) % W)
            add_into(into, got, group, op)
    if op == "mean":
        for piece in chunks[r]:
            piece.div_(W)
    for step in range(W - 1):
        send, recv = (r - step) % W, (r - step - 1) % W
        for out, into in zip(chunks[send], chunks[recv]):
            group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return x


def _check(x: torch.Tensor, group: Group, op: str = "sum", root: int = 0) -> None:
    """Refuse what would hang or give nonsense, naming the argument, its value and the rule."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x={type(x).__name__}: must be a tensor")
    if not x.is_contiguous():
        raise ValueError(f"x has shape {tuple(x.shape)} and strides {x.stride()}: must be "
                         "contiguous, because it is "
                         "changed in place; call it on x.contiguous() and copy the result back")
    if op not in OPS:
        raise ValueError(f"op={op!r}: must be one of {', '.join(OPS)}")
    if op == "mean" and not (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"op='mean' on {x.dtype}: a mean needs a floating-point tensor")
    if not isinstance(root, int) or not 0 <= root < group.size:
        raise ValueError(f"root={root!r}: must be a rank of the group, 0..{group.size - 1}")
