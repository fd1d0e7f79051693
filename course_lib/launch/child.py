"""What runs inside a rank's process: wait for a job, run the function, report, stay until all are
done.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from multiprocessing import parent_process
from pathlib import Path

import torch
import torch.distributed as dist

from .. import board as boards
from .. import collectives, stream  # noqa: F401 - imported once by the fork server, for all ranks
from ..context import CallError, Context
from ..group import Group
from ..recorder import Recorder, learner_site
from ..transport import GlooTransport, TorchTransport
from . import pickling
from .lines import LineFile

# What a rank may come to need and takes long to import. torch.optim imports the compiler when the
# first optimizer is made.
HELD = ("torch._dynamo", "course_lib.checks", "course_lib.pipeline", "course_lib.zero")
PING = b"ping"  # instead of a job: answer and leave
WAIT_LIMIT = timedelta(days=1)  # gloo's own limit; the launcher's limits are shorter and say more


@dataclass
class Job:
    """Everything a fresh process needs to become a rank."""

    function: bytes
    rank: int
    world_size: int
    folder: str
    epoch: float
    backend: str
    device: str
    record: bool | str
    environ: dict
    cwd: str
    path: list[str]
    argv: list[str]


def main(connection) -> None:
    """Entry point of the process. Ends by os._exit, so that nothing of the parent's is torn down
    twice.
    """
    # Jupyter interrupts the whole process group; the parent decides
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        for name in HELD:  # a fork server holds them; a spare imports them while nobody needs it
            if not connection.poll():
                import_module(name)
        message = connection.recv_bytes()
        if message == PING:
            connection.send_bytes(PING)
            os._exit(0)
        job: Job = pickling.loads(message)
    except (EOFError, OSError):
        os._exit(0)  # a spare that was never needed
    try:
        _become(job)
        report = _run(job, connection)
        connection.send_bytes(report)
        # The word to leave: rank 0 hosts nothing that others may still need
        connection.recv_bytes()
    except (EOFError, OSError):
        pass
    sys.stdout.flush()
    os._exit(0)


def _follow_parent() -> None:
    """End with the kernel, also while the main thread is blocked inside gloo."""
    from multiprocessing.connection import wait

    wait([parent_process().sentinel])
    os._exit(1)


def _become(job: Job) -> None:
    os.environ.clear()
    os.environ.update(job.environ)
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")] if hasattr(
        socket, "if_nameindex") else []
    if loopback:
        # No host-name lookup, whatever the machine is called
        os.environ["GLOO_SOCKET_IFNAME"] = loopback[0]
    os.chdir(job.cwd)
    sys.path[:], sys.argv[:] = job.path, job.argv
    if hasattr(os, "SCHED_BATCH"):
        try:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        except OSError:
            pass  # some containers forbid it; only speed is lost
    torch.set_num_threads(1)
    # The collector need not look at torch and the library again and again
    gc.freeze()
    sys.stdout = LineFile(Path(job.folder, f"out{job.rank}"), 1)
    sys.stderr = LineFile(Path(job.folder, f"err{job.rank}"), 2)
    stacks = open(Path(job.folder, f"stack{job.rank}"),
                  "w")  # noqa: SIM115 - open as long as the process lives
    faulthandler.enable(stacks)
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)


def _run(job: Job, connection) -> bytes:
    board = boards.Board(Path(job.folder, "board"), job.world_size)
    writer = board.mine(job.rank)
    recorder = Recorder(job.epoch, memory=job.record is True) if job.record else None
    context = Context(job.rank, job.world_size, None, torch.device(job.device), board, writer,
                      recorder)
    writer.life(boards.RUNNING)
    try:
        function, args, kwargs = pickling.loads(job.function)
        dist.init_process_group(job.backend,
                                store=dist.FileStore(str(Path(job.folder, "store")),
                                                     job.world_size),
                                rank=job.rank, world_size=job.world_size, timeout=WAIT_LIMIT)
        world = dist.group.WORLD
        context.transport = GlooTransport(world) if job.device == "cpu" else TorchTransport(world)
        group = Group(context, "world", tuple(range(job.world_size)))
        with recorder or nullcontext():
            result = function(group, *args, **kwargs)
        _check_finished(context)
        answer = {"kind": "result", "value": _packed(result, job.rank), "calls": context.calls,
                  "rows": recorder.programs if recorder else None}
        writer.life(boards.RETURNED)
    # SystemExit and KeyboardInterrupt too: the run has failed either way
    except BaseException as error:
        writer.life(boards.FAILED)
        if isinstance(error, MemoryError):  # what filled the memory goes: telling needs some
            traceback.clear_frames(error.__traceback__)
        answer = {"kind": "error", "calls": context.calls, **_explain(error)}
    sys.stdout.flush()
    sys.stderr.flush()
    return pickling.dumps(answer)


def _packed(result, rank: int) -> bytes:
    try:
        return pickling.dumps(result)
    except Exception as error:
        raise TypeError(f"the result of rank {rank}, a {type(result).__name__}, cannot be sent "
                        f"back: {error}. "
                        "Return tensors, numbers, strings, or lists and dicts of them") from None


def _check_finished(context: Context) -> None:
    for kind, peer, site in context.open.values():
        direction = "to" if kind == "isend" else "from"
        error = RuntimeError(f"{kind} {direction} rank {peer} was never waited for: keep its "
                             "handle and call wait()")
        error.site = site
        raise error


def _explain(error: BaseException) -> dict:
    """The error as plain data: the parent may know none of the learner's classes."""
    frames = traceback.extract_tb(error.__traceback__)
    here = str(Path(__file__).parent.parent)
    theirs = [f for f in frames if not f.filename.startswith((here, "<"))
              and "/torch/" not in f.filename]
    site = getattr(error, "site", None) or ((theirs[-1].filename, theirs[-1].lineno) if theirs
                                            else learner_site())
    said = error.said if isinstance(error, CallError) else None
    text = str(error)
    if isinstance(error, SystemExit):
        code = "" if error.code is None else repr(error.code)
        text = f"called sys.exit({code}); a rank ends by returning"
    return {"type": type(error).__name__, "text": text, "site": site,
            "what": getattr(error, "what", ""),
            "said": said,
            "connection": isinstance(error, RuntimeError) and _is_connection(text)}


def _is_connection(text: str) -> bool:
    """gloo's words for a peer that has gone: an effect, never the cause."""
    return any(words in text
               for words in ("Connection closed by peer", "Connection reset", "gloo/transport",
                                           "Broken pipe", "Socket closed", "connectFullMesh"))
