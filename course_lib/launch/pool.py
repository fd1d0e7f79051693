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
import signal
import sys
import threading
import time
import types
from pathlib import Path

from . import child

_lock = threading.Lock()
_server_holds: dict[Path, float] = {}  # the library's files as the fork server has read them
_forkserver_works: bool | None = None
_spares: list[tuple[dict, object, object]] = []  # the same, process, connection
PATIENCE = 60.0  # seconds for a new process to import torch on a busy machine
LIBRARY = Path(__file__).parent.parent
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


def prepare() -> None:
    """In a notebook's kernel: start the fork server now, so that it imports torch meanwhile and the
    first run need not wait for it. Elsewhere nothing: who knows whether a run will come.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel") or "forkserver" not in mp.get_all_start_methods():
        return
    with _lock, _without_main(), _deaf():
        _forkserver_context()
        _refresh_server()
        _server().ensure_running()


def method(start: str = "auto") -> str:
    """The way that `start` stands for on this machine: "forkserver" or "spares"."""
    return ("forkserver" if _can_fork_serve() else "spares") if start == "auto" else start


def _process(context) -> tuple:
    ours, theirs = context.Pipe()
    process = context.Process(target=child.main, args=(theirs,), daemon=True)
    with _without_main():
        if context.get_start_method() == "forkserver":
            with _deaf():
                _server().ensure_running()
            process.start()
        else:
            with _deaf():
                process.start()
    theirs.close()
    return process, ours


@contextlib.contextmanager
def _deaf():
    """What is started inside does not hear an interrupt, which Jupyter sends to the kernel and to
    everything that it has started: while torch is imported it would die with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # here, because it ends by unblocking the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
    context.set_forkserver_preload([child.__name__, *child.HELD])
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
        if not answered:
            process.kill()
        process.join(1)
        connection.close()
        return answered
    except (OSError, EOFError):
        return False


def _server():
    from multiprocessing import forkserver  # not on Windows

    return forkserver._forkserver


def _refresh_server() -> None:
    """Start the server anew when a source file of the library has changed: it holds the old
    code.
    """
    global _server_holds
    if _changed(_server_holds):
        _server()._stop()
        _server_holds = {}
    if not _server_holds:
        _server_holds = _sources()


def _sources() -> dict[Path, float]:
    """The library's files that a rank may have imported, and when each was written."""
    files = [path for path in LIBRARY.rglob("*.py") if path.parent.name != "viz"]
    return {path: _written(path) for path in files}


def _changed(sources: dict[Path, float]) -> bool:
    """Whether one of these files has been written again: whoever has imported it is out of date."""
    return any(_written(path) != when for path, when in sources.items())


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _take_spares(count: int) -> list[tuple]:
    """Use the spares that are there, start what is missing, and as many again for the next run."""
    usable = []
    while _spares and len(usable) < count:
        sources, process, connection = _spares.pop()
        if process.is_alive() and not _changed(sources):
            usable.append((process, connection))
        else:
            connection.close()  # it reads the end of the file and ends itself
    context = mp.get_context("spawn")
    usable += [_process(context) for _ in range(count - len(usable))]
    threading.Thread(target=_restock, args=(context, count), daemon=True).start()
    return usable


def _restock(context, count: int) -> None:
    time.sleep(0.05)  # the run that is starting now goes first
    with _lock:
        while len(_spares) < min(count, os.cpu_count() * 4):
            _spares.append((_sources(), *_process(context)))
