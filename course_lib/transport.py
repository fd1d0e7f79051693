"""How a message leaves a rank: gloo's own objects, any torch.distributed backend, or nowhere at all
(dry run).

A transport posts sends and receives and returns objects with `wait()`; everything else (numbering,
checking, recording) is in group.py. NCCL ignores tags and needs a send and a receive between the
same pair to be grouped, so a symmetric step is posted as one list (NVIDIA/nccl issue 479). """

from __future__ import annotations

import torch
import torch.distributed as dist

from .board import SEND


class GlooTransport:
    """Calls the gloo backend itself: 10 to 15 us a message instead of 12 to 27 through
    torch.distributed.
    """

    posts_ahead = True

    def __init__(self, process_group):
        self.backend = process_group._get_backend(torch.device("cpu"))

    def post(self, ops: list[tuple[int, torch.Tensor, int, int]]) -> list:
        """Post (direction, tensor, world rank, tag) operations, receives first so that no send
        finds nobody.
        """
        works = {}
        for i in sorted(range(len(ops)), key=lambda i: ops[i][0] == SEND):
            direction, tensor, peer, tag = ops[i]
            if not tensor.numel():
                tensor = torch.empty(1,
                                     # Gloo wants a byte; an empty message still meets
                                     dtype=torch.uint8)
            act = self.backend.send if direction == SEND else self.backend.recv
            works[i] = act([tensor], peer, tag)
        return [works[i] for i in range(len(ops))]

    def background(self, ranks: tuple[int, ...]) -> GlooTransport:
        """A transport for a second thread: tags keep the two apart on the same connections."""
        return self


class TorchTransport:
    """Any backend of torch.distributed, NCCL above all, by batched point-to-point operations."""

    posts_ahead = False  # NCCL runs the operations of a pair in the order in which they were posted

    def __init__(self, process_group=None):
        self.process_group = process_group

    def post(self, ops: list[tuple[int, torch.Tensor, int, int]]) -> list:
        batch = [dist.P2POp(dist.isend if direction == SEND else dist.irecv, tensor, peer,
                            self.process_group)
                 for direction, tensor, peer, _ in ops]
        works = dist.batch_isend_irecv(batch)
        # NCCL coalesces a batch into one work: everybody who waits for a part waits for the whole.
        return works if len(works) == len(ops) else [works[0]] * len(ops)

    def background(self, ranks: tuple[int, ...]) -> TorchTransport:
        """Its own process group, because the operations of one NCCL communicator run in one
        order.
        """
        return TorchTransport(dist.new_group(list(ranks), use_local_synchronization=True))


class DryTransport:
    """Posts nothing: a receive is over at once and leaves its (meta) tensor as it was.

    `said` is what the ranks of one dry run told of their tensors' shapes; `missed`, that a rank
    asked for another's before that one had its turn. """

    posts_ahead = True

    def __init__(self):
        self.said: dict = {}
        self.missed = False

    def post(self, ops: list[tuple[int, torch.Tensor, int, int]]) -> list:
        return [self] * len(ops)

    def wait(self) -> None:
        """Everything has already happened."""

    def background(self, ranks: tuple[int, ...]) -> DryTransport:
        return self
