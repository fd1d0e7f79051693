"""The world group of a process that somebody else started: torchrun, a cluster's scheduler, mpirun.

The strategies only know a Group, so the same functions run there, on gloo or NCCL, on one host or
many. There is no board across hosts: calls are not compared and deadlocks not detected; the
backend's own time limits remain.
"""

from __future__ import annotations

import os
import time

import torch
import torch.distributed as dist

from .context import Context
from .group import Group
from .recorder import Recorder
from .transport import GlooTransport, TorchTransport

_world: Group | None = None


def current_group(record: bool | str = False) -> Group:
    """The Group of all ranks of this torchrun job; the same object at every call.

    Initialises torch.distributed if nobody has: NCCL and this rank's GPU where there are GPUs,
    gloo otherwise. `group.device` says where tensors belong.

    Raises RuntimeError outside torchrun. Run a script with
    `torchrun --nproc-per-node 4 script.py`, or call `run_ranks` in a notebook.
    """
    global _world
    if _world is not None:
        return _world
    if not dist.is_initialized():
        if "RANK" not in os.environ:
            raise RuntimeError("RANK is not set: current_group() works under torchrun; in a "
                               "notebook, run_ranks(fn, world_size) gives fn its group")
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = torch.device("cpu")
    transport = GlooTransport(dist.group.WORLD) if dist.get_backend() == "gloo" else None
    if transport is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
        transport = TorchTransport(dist.group.WORLD)
    size = dist.get_world_size()
    recorder = Recorder(time.perf_counter(), memory=record is True) if record else None
    context = Context(dist.get_rank(), size, transport, device, recorder=recorder)
    _world = Group(context, "world", tuple(range(size)))
    return _world
