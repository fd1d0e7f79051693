"""The grader's hold on its checking process: ask, wait no longer than the limit, end everything it
started.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

from .checks.machinery import Task
from .checks.report import FAILED, NOT_RUN, UNGRADED, Report, Result

START_LIMIT = 120.0  # seconds to import torch and start the first rank
SLACK = 15.0  # seconds beyond twice the task's limit: the check ends by itself long before


class CheckingProcess:
    """A process that runs checks. Started at the first question, and again after it has been
    ended.
    """

    def __init__(self):
        self.process = self.results = None
        self.word, self.buffer = "", b""

    def __enter__(self) -> CheckingProcess:
        return self

    def __exit__(self, *error) -> None:
        self.end()

    def grade(self, task: Task, source: list, seed: int, limit: float) -> Report:
        """The report on one answer. Never raises: what goes wrong becomes a report without
        points.
        """
        try:
            trouble = self._start() if self.process is None else ""
            if trouble:
                self.end()
                return refusal(task, UNGRADED, "could-not-grade", trouble)
            self._send({"name": task.name, "source": source, "seed": seed, "limit": limit})
            reply = self._receive(2 * limit + SLACK)
        except (OSError, ValueError) as error:
            reply = {"gone": f"{type(error).__name__}: {error}"}
        if "report" in reply:
            return Report.from_dict(reply["report"])
        self.end()
        if "late" in reply:
            return refusal(task, FAILED, "time-limit", f"not finished after {limit:g} s")
        return refusal(
            task, UNGRADED, "could-not-grade", f"the checking process ended: {reply['gone']}"
        )

    def _start(self) -> str:
        """Start the process; "" when it is ready, else what is in the way."""
        self.word, self.buffer = secrets.token_hex(16), b""
        read, write = os.pipe()
        self.results = read
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "course_lib.grade_child", str(write)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(write,),
                start_new_session=True,
            )
        finally:
            os.close(write)
        self.process.stdin.write(self.word.encode() + b"\n")
        self.process.stdin.flush()
        reply = self._receive(START_LIMIT)
        return (
            reply["ready"] if "ready" in reply else f"the checking process did not start: {reply}"
        )

    def _send(self, request: dict) -> None:
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def _receive(self, patience: float) -> dict:
        """The next reply that carries the word; {"late": ..} or {"gone": ..} when there is none."""
        deadline = time.monotonic() + patience
        with selectors.DefaultSelector() as selector:
            selector.register(self.results, selectors.EVENT_READ)
            while True:
                line, newline, rest = self.buffer.partition(b"\n")
                if newline:
                    self.buffer = rest
                    with contextlib.suppress(ValueError):
                        reply = json.loads(line)
                        if isinstance(reply, dict) and reply.pop("word", None) == self.word:
                            return reply
                    continue
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return {"late": patience}
                data = os.read(self.results, 1 << 16)
                if not data:
                    self.process.wait()
                    return {"gone": f"exit code {self.process.returncode}"}
                self.buffer += data

    def end(self) -> None:
        """End the process and all that came from it, also what has left its process group."""
        if self.results is not None:
            os.close(self.results)
            self.results = None
        if self.process is None:
            return
        for _ in range(100):
            living = descendants(self.process.pid)
            if not living:
                break
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError, AttributeError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process = None


def refusal(task: Task, status: str, verdict: str, message: str, hint: str = "") -> Report:
    """A report whose first subcheck carries the reason, and whose others were not run."""
    results = [Result(sub.name, NOT_RUN, sub.points, sub.gate) for sub in task.subchecks]
    first = task.subchecks[0]
    results[0] = Result(first.name, status, first.points, first.gate, verdict, message, hint)
    return Report(task.number, task.name, results)


def descendants(pid: int) -> list[int]:
    """Process ids of everything that descends from `pid` and still runs (Linux; elsewhere none are
    seen).
    """
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        mine = children.get(todo.pop(), [])
        found += mine
        todo += mine
    return found
