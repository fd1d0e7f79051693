"""All-reduce, the collective that training rests on. The contracts are in the package's table."""

from __future__ import annotations

import torch

from ..calls import collective, copy_into
from ..group import Group
from .checked import check_segments, check_tensor
from .many import cut, pass_around, ring_reduce_scatter
from .rooted import broadcast, reduce


@collective("shape", "op")
def naive_all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks: reduce to rank 0, then
    broadcast.

    Cost: rank 0 receives (W-1)n bytes and sends (W-1)n, in 2(W-1) steps; the others send and
    receive n each.
    """
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
    "Bandwidth optimal all-reduce algorithms for clusters of workstations").
    """
    check_tensor(x, group, op)
    check_segments(segments)
    chunks = list(x.view(-1).tensor_split(group.size))
    copy_into(chunks[group.rank], ring_reduce_scatter(chunks, group, op, segments), group)
    pass_around([cut(chunk, segments) for chunk in chunks], group)
    return x
