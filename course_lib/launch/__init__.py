"""run_ranks: call a function in several fresh processes that can talk to each other.

Launching costs about 0.1 s for four ranks (after a first start of about 1.5 s). Whatever goes wrong
in a rank is explained, not waited for: see team.py for the failures and verdict.py for deadlocks.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch
import torch.distributed as dist

from ..context import check_record
from ..recorder import make_trace
from ..trace import Trace
from . import errors, pickling
from .child import Job
from .status import Status
from .team import Team

INSIDE = "LOCKSTEP_RANK"


@dataclass
class Run:
    """What a finished run leaves: `results[rank]`, the `trace`, printed `lines` (rank, text), and
    `warnings`.
    """

    world_size: int
    results: list
    lines: list[tuple[int, str]]
    warnings: list[str]
    _rows: dict = field(repr=False, default_factory=dict)

    @cached_property
    def trace(self) -> Trace | None:
        """What every rank computed, sent, waited for and held; None with record=False."""
        return make_trace(self.world_size, self._rows, errors.readable) if self._rows else None

    def __repr__(self) -> str:
        sent = "not recorded" if self.trace is None else (
            f"{sum(map(self.trace.messages_sent, range(self.world_size)))} messages")
        return f"Run of {self.world_size} ranks: {sent}"


def run_ranks(fn, world_size: int, *args, timeout: float = 60.0, backend: str = "gloo",
              device: str = "cpu",
              record: bool | str = True, start: str = "auto", **kwargs) -> Run:
    """Call fn(group, *args, **kwargs) in `world_size` fresh processes and return what they
    returned.

    fn may be any function, lambda or closure, written in a cell, a script or a module. `record` is
    True (messages, FLOPs and memory), "calls" (messages only) or False. `timeout` is in seconds.
    `start` chooses where processes come from: "forkserver", "spares", or "auto". `backend` and
    `device` are torch's names.

    What ranks print appears when the run is over, in rank order, each line marked with its rank.

    Raises RankFailure (Deadlock, CallMismatch, RankDied, RankTimeout) when anything goes wrong in
    any rank; a failed run has no result. ValueError or TypeError for wrong arguments. """
    _check(fn, world_size, timeout, record)
    _check_device(backend, device)
    with _folder() as folder:
        job = Job(_pickled(fn, args, kwargs), 0, world_size, str(folder), time.perf_counter(),
                  backend, device,
                  record, {**os.environ, INSIDE: "1"}, os.getcwd(), list(sys.path), list(sys.argv))
        status, lines = Status(folder, world_size), []
        try:
            with Team(job, start) as team:
                try:
                    reports = team.watch(timeout, status.tick)
                finally:
                    lines = team.lines()
        except errors.RankFailure as failure:
            _print(lines)
            failure.lines = lines
            errors.announce(failure)
            raise failure from None
        finally:
            status.close()
        _print(lines)
    return _finished(world_size, [reports[rank] for rank in range(world_size)], lines)


def _finished(world_size: int, reports: list[dict], lines: list) -> Run:
    warning = errors.crossing({rank: report["calls"] for rank, report in enumerate(reports)})
    rows = {rank: report["rows"] for rank, report in enumerate(reports)
            if report["rows"] is not None}
    if warning:
        print(f"warning: {warning}")
    return Run(world_size, [pickling.loads(report["value"]) for report in reports], lines,
               [warning] if warning else [], rows)


def _print(lines: list[tuple[int, str]]) -> None:
    if lines:
        print("\n".join(f"[rank {rank}] {line}" for rank, line in lines))


def _pickled(fn, args, kwargs) -> bytes:
    try:
        return pickling.dumps((fn, args, kwargs))
    except Exception as error:
        name = getattr(fn, "__name__", repr(fn))
        raise TypeError(f"{name} or one of its arguments cannot be sent to the ranks: {error}. "
                        "Open files, locks and running threads stay where they are; make them "
                        "inside the function") from None


def _check(fn, world_size, timeout, record) -> None:
    if not callable(fn):
        raise TypeError(f"fn={fn!r}: must be a function that takes a Group")
    if isinstance(world_size, bool) or not isinstance(world_size, int) or not 1 <= world_size <= 64:
        raise ValueError(f"world_size={world_size!r}: must be a whole number from 1 to 64")
    if not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ValueError(f"timeout={timeout!r}: must be a number of seconds above 0")
    check_record(record)
    if INSIDE in os.environ:
        raise RuntimeError("run_ranks was called inside a rank: ranks cannot start ranks. Use "
                           "group.split for subgroups")


def _check_device(backend, device) -> None:
    names = [part.split(":")[-1] for part in str(backend).split(",")]  # as in cpu:gloo,cuda:nccl
    if not all(map(dist.is_backend_available, names)):
        raise ValueError(f"backend={backend!r}: must be a backend that this torch has, as gloo")
    try:
        torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device={device!r}: must be a device of torch, as cpu or cuda") from None


@contextmanager
def _folder():
    """A folder for one run. Those of kernels that were killed are removed here, at somebody's next
    launch.
    """
    parent = Path(tempfile.gettempdir())
    if os.name == "posix":
        for old in parent.glob("lockstep-run-*"):
            if not _alive(old.name.split("-")[2]):
                shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"lockstep-run-{os.getpid()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True
