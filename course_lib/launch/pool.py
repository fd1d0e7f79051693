"""Where rank processes come from: a fork server with torch already imported, or spare processes
kept ready.

Starting Python and importing torch takes seconds; neither way pays for it at every launch. The
kernel itself is never forked: its threads would leave locks behind that nobody in the child can
open.

A process is given its work over a pipe, so both ways lead to the same `child.main`.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import sys
import threading
import time
import types
from pathlib import Path

from . import child

_lock = threading.Lock()
_server_since: float | None = None
_forkserver_works: bool | None = None
_spares: list[tuple[float, object, object]] = []
PATIENCE = 60.0  # seconds for a new process to import torch on a busy machine
PRELOADED = tuple(f"course_lib.{name}" for name in (
    "board", "calls", "collectives", "context", "group", "launch", "recorder", "stream",
    "trace", "transport"))
METHODS = ("auto", "forkserver", "spares")


def start_processes(count: int, start: str) -> list[tuple]:
    """`count` fresh (process, connection) pairs that wait for a job. ValueError for an unknown
    `start`.
    """
    if start not in METHODS:
        raise ValueError(f"start={start!r}: must be one of {', '.join(METHODS)}")
    with _lock:
        if start == "forkserver" or start == "auto" and _can_fork_serve():
            _refresh_server()
            return [_process(_forkserver_context()) for _ in range(count)]
        return _take_spares(count)


def method(start: str = "auto") -> str:
    """The way that `start` stands for on this machine: "forkserver" or "spares"."""
    return ("forkserver" if _can_fork_serve() else "spares") if start == "auto" else start


def _process(context) -> tuple:
    ours, theirs = context.Pipe()
    with _without_main():
        process = context.Process(target=child.main, args=(theirs,), daemon=True)
        process.start()
    theirs.close()
    return process, ours


@contextlib.contextmanager
def _without_main():
    """Hide the caller's script: multiprocessing would run it again in the child, and so ask for a
    main guard.

    Functions travel by value (pickling.py), so no child needs the script.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _forkserver_context():
    context = mp.get_context("forkserver")
    # torch.optim imports the compiler at its first step: better once in the server than in every
    # rank.
    context.set_forkserver_preload([child.__name__, "torch._dynamo"])
    return context


def _can_fork_serve() -> bool:
    """Whether the fork server exists here and a process of it answers; found out once."""
    global _forkserver_works
    if _forkserver_works is None:
        _forkserver_works = "forkserver" in mp.get_all_start_methods() and _answers()
    return _forkserver_works


def _answers() -> bool:
    try:
        process, connection = _process(_forkserver_context())
        connection.send_bytes(child.PING)
        answered = connection.poll(PATIENCE) and connection.recv_bytes() == child.PING
        process.join(1)
        connection.close()
        return answered
    except (OSError, EOFError):
        return False


def _refresh_server() -> None:
    """Start the server anew when a source file of the library is newer than it: it holds the old
    code.
    """
    global _server_since
    if _server_since is not None and _newest_source() > _server_since:
        mp.forkserver._forkserver._stop()
        _server_since = None
    if _server_since is None:
        _server_since = time.time()


def _newest_source() -> float:
    """When the newest of the library's files was written that a waiting process has already
    imported.
    """
    files = [Path(module.__file__) for name, module in list(sys.modules.items())
             if name.startswith(PRELOADED) and getattr(module, "__file__", None)]
    return max(path.stat().st_mtime for path in files if path.exists())


def _take_spares(count: int) -> list[tuple]:
    """Use the spares that are there, start what is missing, and as many again for the next run."""
    newest = _newest_source()
    usable = []
    while _spares and len(usable) < count:
        born, process, connection = _spares.pop()
        if born > newest and process.is_alive():
            usable.append((process, connection))
        else:
            connection.close()
    context = mp.get_context("spawn")
    usable += [_process(context) for _ in range(count - len(usable))]
    threading.Thread(target=_restock, args=(context, count), daemon=True).start()
    return usable


def _restock(context, count: int) -> None:
    time.sleep(0.05)  # the run that is starting now goes first
    with _lock:
        while len(_spares) < min(count, os.cpu_count() * 4):
            _spares.append((time.time(), *_process(context)))
