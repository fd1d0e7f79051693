"""What tensors the others bring to a collective, where a rank cannot know it from its own.

A gather of ragged parts, a scatter or an all-to-all needs the sizes before the data. Inside
`run_ranks` they are read from the board, so that the messages of a trace are the data alone;
without a board (torchrun) they travel first, in one small message per pair of ranks. A dry run
reads what the other ranks' dry runs have said.
"""

from __future__ import annotations

import json
import time
import zlib

import torch

from .board import DTYPES, ON_CALL
from .group import Group
from .transport import DryTransport

HEADER = 1024  # bytes of the message that carries the sizes where there is no board


class NotToldYet(Exception):
    """In a dry run: this rank brings nothing itself and cannot guess what it will receive."""


Spec = tuple[str, tuple[int, ...]]  # dtype, shape


def share_shapes(parts: list[torch.Tensor], group: Group, of: list[int] | None = None
                 ) -> dict[int, list[Spec]]:
    """After: every rank knows dtype and shape of the parts of the ranks in `of` (default: all).

    Called by every rank inside a collective. ValueError when a header would be larger than 1024 B.
    """
    mine = [(str(part.dtype)[6:], tuple(part.shape)) for part in parts]
    wanted = [rank for rank in (range(group.size) if of is None else of) if rank != group.rank]
    if isinstance(group._transport, DryTransport):
        group._transport.said[group._call.channel, group.ranks[group.rank]] = mine
        theirs = {rank: _from_other_runs(mine, rank, group) for rank in wanted}
    elif group._context.board is not None:
        theirs = _from_board(mine, wanted, group)
    else:
        theirs = _by_messages(mine, wanted, group)
    return {**theirs, group.rank: mine}


def empty(spec: Spec, group: Group, category: str = "other") -> torch.Tensor:
    """Room for a tensor of that dtype and shape."""
    return group.hold(torch.empty(spec[1], dtype=getattr(torch, spec[0]), device=group.device),
                      category)


def _from_board(mine: list[Spec], wanted: list[int], group: Group) -> dict[int, list[Spec]]:
    context, number, site = group._context, group._call.number, group._call.site
    context.writer.shapes(group._number, number, json.dumps(mine).encode())
    crc, found = zlib.crc32(group.name.encode()) | 1 << 32, {}
    for rank in wanted:
        world = group.ranks[rank]
        while rank not in found:
            comm = context.board.find_comm(world, crc)
            body = None if comm is None else context.board.shapes(world, comm, number)
            if body is not None:
                found[rank] = _parsed(body)
                break
            context.writer.block(group._stream_number, ON_CALL, group._number, True, 0, world,
                                 number, site)
            time.sleep(2e-5)
        context.writer.unblock(group._stream_number)
    return found


def _by_messages(mine: list[Spec], wanted: list[int], group: Group) -> dict[int, list[Spec]]:
    body = json.dumps(mine).encode()
    if len(body) > HEADER:
        raise ValueError(f"the shapes of this call take {len(body)} B: at most {HEADER} B can "
                         "be sent ahead")
    header = torch.tensor(list(body.ljust(HEADER)), dtype=torch.uint8, device=group.device)
    found = {}
    for step in range(1, group.size):
        into = torch.empty_like(header)
        frm = (group.rank - step) % group.size
        group.exchange(header, (group.rank + step) % group.size, into, frm)
        found[frm] = _parsed(bytes(into.tolist()))
    return {rank: found[rank] for rank in wanted}


def _from_other_runs(mine: list[Spec], rank: int, group: Group) -> list[Spec]:
    """What that rank said in its own dry run; until it has had one, what this rank brings."""
    said, channel = group._transport.said, group._call.channel
    if (channel, group.ranks[rank]) not in said:
        group._transport.missed = True
        if not mine:
            raise NotToldYet
    return said.get((channel, group.ranks[rank]), mine)


def _parsed(body: bytes) -> list[Spec]:
    return [(dtype, tuple(shape)) for dtype, shape in json.loads(body) if dtype in DTYPES]
