"""What the tests of the launcher share: clocks, a look at the process table, and real kernels."""

from __future__ import annotations

import os
import queue
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from jupyter_client import KernelManager

SLACK = 5  # times the target before a test fails: it catches a hang; benchmarks judge the time


def crowd():
    """How many processes want each core; 1 on a machine that has nothing else to do."""
    return max(1.0, psutil.getloadavg()[0] / (os.cpu_count() or 1))


@contextmanager
def within(target, what=""):
    """Print how long the block took, and fail beyond five times the target (seconds), times the
    number of processes per core where others use the machine too.
    """
    began = time.monotonic()
    yield
    took, limit = time.monotonic() - began, SLACK * target * crowd()
    print(f"{what}: {took:.2f} s (target {target} s)")
    assert took < limit, f"{what} took {took:.2f} s, target {target} s"


def alive(pids):
    """Those of the processes that still run, zombies aside."""
    found = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            pass
    return found


def descendants(pid):
    """Every process that this one has started, directly or not, and that still runs."""
    try:
        return alive(p.pid for p in psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def seconds_until_gone(pids, limit):
    """How long it takes until none of the processes is alive; what is left at the limit is in the
    message.
    """
    began, limit = time.monotonic(), limit * crowd()
    while left := alive(pids):
        assert time.monotonic() - began < limit, f"after {limit:.1f} s still alive: {left}"
        time.sleep(0.02)
    return time.monotonic() - began


def pids_in(folder, count, patience=60.0):
    """The process ids that `count` ranks have written as file names into the folder."""
    end = time.monotonic() + patience
    while len(found := [int(p.name) for p in Path(folder).iterdir() if p.name.isdigit()]) < count:
        assert time.monotonic() < end, f"only {len(found)} of {count} ranks have started"
        time.sleep(0.02)
    return found


@dataclass(frozen=True)
class Reply:
    """What a cell showed: printed text, the error's name and text, and the lines of its traceback.
    """

    text: str
    error: str
    value: str
    traceback: str


class Kernel:
    """A Jupyter kernel of its own, used as a context manager."""

    def __init__(self, **environ):
        env = {key: text for key, text in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
        self.manager = KernelManager()
        self.manager.start_kernel(env={**env, **environ},
                                  extra_arguments=["--IPKernelApp.log_level=ERROR"])
        self.client = self.manager.client()

    def __enter__(self):
        self.client.start_channels()
        self.client.wait_for_ready(timeout=120)
        return self

    def __exit__(self, *error):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    @property
    def pid(self):
        return self.manager.provisioner.pid

    def send(self, code):
        """Start a cell and return its message id, for `finish`."""
        return self.client.execute(code)

    def finish(self, message, patience=120.0):
        """Wait until the cell is over; everything that it showed."""
        text, error, end = [], ("", "", []), time.monotonic() + patience
        while True:
            try:
                told = self.client.get_iopub_msg(timeout=max(0.1, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no end after {patience} s; so far {text}") from None
            content = told["content"]
            if told["parent_header"].get("msg_id") != message:
                continue
            if told["msg_type"] == "stream":
                text.append(content["text"])
            elif told["msg_type"] == "execute_result":
                text.append(content["data"]["text/plain"])
            elif told["msg_type"] == "error":
                error = content["ename"], content["evalue"], content["traceback"]
            elif told["msg_type"] == "status" and content["execution_state"] == "idle":
                traceback = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error[2]))
                return Reply("".join(text), error[0], error[1], traceback)

    def run(self, code, patience=120.0):
        """Run a cell; what it showed."""
        return self.finish(self.send(code), patience)
