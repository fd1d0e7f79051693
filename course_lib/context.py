"""What the groups of one rank share, and a message on its way."""

from __future__ import annotations

import ctypes
import itertools
import zlib
from dataclasses import dataclass, field

import torch

from . import board as boards
from .board import RECV, SEND, Board, Writer
from .recorder import Recorder, library_line

KINDS = {SEND: ("send", "isend"), RECV: ("recv", "irecv")}
DTYPES = frozenset(getattr(torch, name) for name in boards.DTYPES)
PROBE_BYTES = 1 << 16  # how much of a tensor is compared between isend and wait


class CallError(RuntimeError):
    """Two ranks disagree about a call or a message; `said` maps ranks to (what they do, their
    line).
    """

    def __init__(self, what: str, said: dict[int, tuple[str, tuple[str, int]]]):
        lines = ", ".join(f"rank {r} {text}" for r, (text, _) in sorted(said.items()))
        super().__init__(f"{what} differs: {lines}")
        self.what, self.said = what, said

    def __reduce__(self):
        return CallError, (self.what, self.said)


@dataclass
class Context:
    """What the groups of one rank share. Board and recorder are None where there is none (torchrun,
    record=False).
    """

    rank: int
    world_size: int
    transport: object
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    board: Board | None = None
    writer: Writer | None = None
    recorder: Recorder | None = None
    # Requests not waited for yet -> (what, peer, site)
    open: dict[int, tuple] = field(default_factory=dict)
    # (communicator, number, op, site) of every collective
    calls: list[tuple] = field(default_factory=list)
    requests: itertools.count = field(default_factory=itertools.count)


def check_record(record) -> None:
    """ValueError unless it is what run_ranks and dry_run take."""
    if record not in (True, False, "calls"):
        raise ValueError(f"record={record!r}: must be True, False or \"calls\"")


class Handle:
    """A message on its way. `wait()` returns when the tensor may be used (or, for a send,
    overwritten).
    """

    def __init__(self, group, direction, tensor, peer, k, work, site, source):
        self.group, self.direction, self.tensor = group, direction, tensor
        self.peer, self.k, self.work, self.site, self.source = peer, k, work, site, source
        self.collective = group._call is not None
        self.probe = None
        self.request = next(group._context.requests)
        group._context.open[self.request] = (KINDS[direction][1], peer, site)

    def wait(self) -> None:
        """Block until the message is through. RuntimeError if a sent tensor was changed
        meanwhile.
        """
        self.group._wait([self], library_line())


def sendable(group, direction: int, tensor, peer: int) -> tuple[torch.Tensor, int]:
    """The tensor as it can travel, and the peer's rank in the world. TypeError or ValueError for
    what would hang or give nonsense.
    """
    verb, argument = KINDS[direction][0], "to" if direction == SEND else "frm"
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{verb} takes a tensor, not {type(tensor).__name__}")
    if not isinstance(peer, int) or not 0 <= peer < group.size:
        raise ValueError(f"{argument}={peer!r}: must be a rank of the group, 0..{group.size - 1}")
    if peer == group.rank:
        raise ValueError(f"{argument}={peer}: this is rank {peer} itself; a rank sends only to "
                         "others")
    if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        if direction == RECV:
            raise ValueError(f"recv needs a contiguous tensor to fill, not one of strides "
                             f"{tensor.stride()} or a conjugate that is not computed yet: receive "
                             "into torch.empty(...) and copy")
        tensor = tensor.contiguous().resolve_conj().resolve_neg()
    check_dtype(tensor, f"{verb} of a tensor")
    if group.device.type == "meta" and not tensor.is_meta:
        raise ValueError(f"{verb} of a real tensor of shape {tuple(tensor.shape)} in a dry run: "
                         "make it inside the function, or pass it (or its module) as an argument")
    return tensor.detach() if tensor.requires_grad else tensor, group.ranks[peer]


def check_dtype(tensor: torch.Tensor, what: str = "a tensor") -> None:
    """TypeError, in which the tensor is called `what`, for a dtype that messages do not have."""
    if tensor.dtype not in DTYPES:
        raise TypeError(f"{what} of {tensor.dtype}: must be one of {', '.join(boards.DTYPES)}")


def probe(tensor: torch.Tensor) -> int | None:
    """A checksum of the first 64 KiB of a CPU tensor, to see whether somebody writes to what is
    being sent; -1 if its memory is gone.
    """
    if tensor.device.type != "cpu" or not tensor.numel():
        return None
    begin = tensor.storage_offset() * tensor.element_size()
    if tensor.untyped_storage().nbytes() < begin + tensor.nbytes:
        return -1
    # Not through numpy(): a storage that numpy has seen can never be resized again
    nbytes = min(tensor.nbytes, PROBE_BYTES)
    return zlib.adler32((ctypes.c_char * nbytes).from_address(tensor.data_ptr()))
