"""Many to many: barrier, all-gather, reduce-scatter, all-to-all (contracts: the package)."""

from __future__ import annotations

import torch

from ..calls import add_into, collective, copy_of, scratch
from ..group import Group
from ..shapes import empty, share_shapes
from .checked import check_parts, check_segments, divide


@collective()
def barrier(group: Group) -> None:
    """After: every rank knows that all ranks have called it.

    Cost per rank: ceil(log2 W) steps of one byte: in step k each rank hears from the rank 2^k
    behind it, and so, at second hand, from 2^(k+1) ranks (dissemination barrier; Hensgen, Finkel
    and Manber 1988).
    """
    token, distance = torch.zeros(1, dtype=torch.uint8, device=group.device), 1
    while distance < group.size:
        to, frm = (group.rank + distance) % group.size, (group.rank - distance) % group.size
        group.exchange(token, to, scratch(token, group), frm)
        distance *= 2


@collective()
def ring_all_gather(x: torch.Tensor, group: Group) -> list[torch.Tensor]:
    """After: every rank holds the list of all ranks' x. Each part travels once around the ring.

    Cost per rank: W-1 steps, (W-1)/W n bytes sent, where n is the bytes of all parts together.
    """
    specs = share_shapes([x], group)
    parts = [copy_of(x, group) if rank == group.rank
             else empty(specs[rank][0], group) for rank in range(group.size)]
    pass_around([[part] for part in parts], group)
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
    check_segments(segments)
    parts = check_parts(parts, group, op)
    r, W = group.rank, group.size
    partial = parts[(r - 1) % W] if W > 1 else copy_of(parts[0], group)
    for step in range(W - 1):
        into = parts[(r - step - 2) % W]
        incoming = scratch(into, group)
        for out, piece, own in zip(*(cut(t, segments) for t in (partial, incoming, into))):
            add_into(group.exchange(out, (r + 1) % W, piece, (r - 1) % W), own, group, op)
        partial = incoming
    return divide(partial, group, op)


@collective("shapes", "op")
def reduce_scatter(parts: list[torch.Tensor], group: Group, op: str = "sum") -> torch.Tensor:
    """After: rank r holds the sum over ranks of part r. Cost: as ring_reduce_scatter."""
    return ring_reduce_scatter(parts, group, op)


@collective()
def pairwise_all_to_all(parts: list[torch.Tensor], group: Group) -> list[torch.Tensor]:
    """After: rank r holds part r of every rank's list, by rank. The transpose of a table of parts.

    Cost per rank: W-1 steps; in step s it sends to the rank s ahead and hears from the one s
    behind. Sent: n bytes minus the own part (pairwise exchange, as MPICH's for long messages).
    """
    parts = check_parts(parts, group)
    specs, r, W = share_shapes(parts, group), group.rank, group.size
    received = [copy_of(parts[r], group) if rank == r else empty(specs[rank][r], group)
                for rank in range(W)]
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        group.exchange(parts[to], to, received[frm], frm)
    return received


@collective()
def all_to_all(parts: list[torch.Tensor], group: Group) -> list[torch.Tensor]:
    """After: rank r holds part r of every rank's list. Cost: as pairwise_all_to_all."""
    return pairwise_all_to_all(parts, group)


def pass_around(chunks: list[list[torch.Tensor]], group: Group) -> None:
    """After: every rank holds every chunk; before, rank r had only chunk r. A chunk is a list of
    pieces.
    """
    r, W = group.rank, group.size
    for step in range(W - 1):
        send, recv = (r - step) % W, (r - step - 1) % W
        for out, into in zip(chunks[send], chunks[recv]):
            group.exchange(out, (r + 1) % W, into, (r - 1) % W)


def cut(chunk: torch.Tensor, segments: int) -> list[torch.Tensor]:
    return [chunk] if segments == 1 else list(chunk.reshape(-1).tensor_split(segments))
