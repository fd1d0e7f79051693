"""check_setup: is this machine ready for the course? One line per thing, and what to do where it is
not.
"""

from __future__ import annotations

import html
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

OLDEST = {"Python": (3, 11), "torch": (2, 6)}


@dataclass(frozen=True)
class Line:
    ok: bool
    what: str
    advice: str = ""
    detail: str = ""


@dataclass
class Setup:
    """What `check_setup()` returns: `passed`, and a table of what was looked at. `details` adds
    versions.
    """

    lines: list[Line]
    details: bool = False

    @property
    def passed(self) -> bool:
        return all(line.ok for line in self.lines)

    @property
    def verdict(self) -> str:
        bad = sum(not line.ok for line in self.lines)
        return (
            "Everything is ready."
            if not bad
            else f"{bad} of {len(self.lines)} things need attention."
        )

    def require(self) -> Setup:
        """Raise RuntimeError unless everything is ready; for scripts."""
        if not self.passed:
            raise RuntimeError(str(self))
        return self

    def rows(self) -> list[tuple[str, str]]:
        """(ok or MISSING, what was looked at and what to do)."""
        return [
            (
                "ok" if line.ok else "MISSING",
                line.what
                + (f" ({line.detail})" if line.detail and (self.details or not line.ok) else "")
                + (f": {line.advice}" if not line.ok else ""),
            )
            for line in self.lines
        ]

    def __str__(self) -> str:
        return "\n".join([*(f"{state:<8}{text}" for state, text in self.rows()), self.verdict])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{state}</td><td style='text-align:left'>{html.escape(text)}</td></tr>"
            for state, text in self.rows()
        )
        return f"<div><table>{rows}</table><b>{html.escape(self.verdict)}</b></div>"


def check_setup(details: bool = False) -> Setup:
    """Look at Python, PyTorch and the launcher, and start two real ranks that agree on a sum. Takes
    about 2 s.

    details=True adds versions and the way ranks are started, for a bug report. Never raises.
    """
    looks = (_python, _torch, _notebook, _two_ranks, _nothing_left)
    return Setup([_safely(look) for look in looks], details)


def _safely(look: Callable[[], Line]) -> Line:
    try:
        return look()
    except Exception as trouble:
        what = (look.__doc__ or "").strip()
        return Line(False, what, "this look failed", f"{type(trouble).__name__}: {trouble}")


def _python() -> Line:
    """Python 3.11 or newer"""
    return Line(
        sys.version_info >= OLDEST["Python"],
        _python.__doc__,
        "make the environment again with a newer Python",
        f"Python {platform.python_version()} on {platform.system()}",
    )


def _torch() -> Line:
    """PyTorch 2.6 or newer; a CPU build is enough"""
    found = version("torch")
    numbers = tuple(int(part) for part in found.split("+")[0].split(".")[:2])
    return Line(
        numbers >= OLDEST["torch"], _torch.__doc__, "pip install 'torch>=2.6'", f"torch {found}"
    )


def _notebook() -> Line:
    """widgets and charts for the notebook"""
    names = ("ipywidgets", "anywidget", "plotly")
    return Line(True, _notebook.__doc__, "", ", ".join(f"{name} {version(name)}" for name in names))


def _sum_of_ranks(group) -> float:
    import torch

    from ..collectives import all_reduce

    return all_reduce(torch.tensor([float(group.rank + 1)]), group).item()


def _two_ranks() -> Line:
    """two real processes start, talk and agree on a sum"""
    from .. import run_ranks
    from ..launch import pool

    run = run_ranks(_sum_of_ranks, 2, timeout=60.0)
    batch = "with" if hasattr(os, "SCHED_BATCH") else "without"
    return Line(
        run.results == [3.0, 3.0],
        _two_ranks.__doc__,
        "they did not agree: please report this",
        f"results {run.results}, started by {pool.method()}, {batch} SCHED_BATCH, {os.cpu_count()} "
        f"cores",
    )


def _nothing_left() -> Line:
    """the run left no file behind"""
    folders = list(Path(tempfile.gettempdir()).glob(f"lockstep-run-{os.getpid()}-*"))
    return Line(
        not folders,
        _nothing_left.__doc__,
        "something keeps files of a run open",
        f"{len(folders)} folders",
    )
