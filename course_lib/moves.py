"""Where a rank's data is and where it goes inside its memory: what a view needs to follow it.

A part of a storage is (buffer, offset, elements). Buffers are numbered as they are first met.
Messages name their part; copies and additions between messages are noted here, and the next event
of the stream carries them.
"""

from __future__ import annotations

import torch

aten = torch.ops.aten
SMALL = 4096  # elements up to which copies and sums outside collectives are noted
COPIES = {aten.copy_.default: 1, aten.clone.default: 0, aten.mul.Tensor: 0, aten.div.Tensor: 0}
SUMS = {aten.add_.Tensor, aten.add.Tensor, aten.maximum.default}


class Moves:
    """The numbers of one rank's storages, and the moves that no event carries yet.

    Without the memory ledger nobody says when a storage's address is used again: then it is off,
    and events say nothing of parts and moves.
    """

    def __init__(self, on: bool = True):
        self.on = on
        self.numbers: dict[int, int] = {}
        self.met = 0
        self.pending: dict[str, list[tuple]] = {}

    def parts(self, tensors) -> tuple[tuple[int, int, int], ...]:
        return tuple([self.part(t) for t in tensors]) if self.on else ()

    def part(self, tensor: torch.Tensor) -> tuple[int, int, int]:
        """Which elements of which storage a contiguous tensor is."""
        key = tensor.untyped_storage()._cdata
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = self.met = self.met + 1
        return number, tensor.storage_offset(), tensor.numel()

    def forget(self, key: int) -> None:
        """The storage is gone; another one may get its address."""
        self.numbers.pop(key, None)

    def note(self, how: str, into: torch.Tensor, source: torch.Tensor, stream: str) -> None:
        """A "copy" or "add" of `source` into `into`, element by element."""
        if self.on:
            self.pending.setdefault(stream, []).append((how, self.part(into), self.part(source)))

    def take(self, stream: str) -> tuple[tuple, ...]:
        """What has been noted on the stream since the last time."""
        return tuple(self.pending.pop(stream, ()))

    def operator(self, func, args, out, stream: str) -> None:
        """Note what an operator outside collectives copies or adds, if it is small."""
        if func not in SUMS and func not in COPIES:
            return
        source = args[COPIES.get(func, 1)]
        if (not isinstance(source, torch.Tensor) or out.numel() > SMALL
                or source.numel() != out.numel() or not out.is_contiguous()):
            return
        if func in SUMS and out is not args[0]:
            self.note("copy", out, args[0], stream)
        self.note("add" if func in SUMS else "copy", out, source, stream)
