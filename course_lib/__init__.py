"""Lockstep: how large language models are trained in parallel, run for real on a laptop."""

from .dry import dry_run
from .group import Group
from .launch import pool, run_ranks
from .magic import load_ipython_extension
from .progress import progress
from .trace import Trace
from .virtual_time import replay

__all__ = ["Group", "Trace", "check_setup", "dry_run", "load_ipython_extension", "progress",
           "replay", "run_ranks", "show"]

pool.prepare()


def __getattr__(name: str):
    """`show` and `check_setup` are loaded when they are used: a rank needs neither."""
    if name == "show":
        from .viz import show

        return show
    if name == "check_setup":
        from .checks import check_setup

        return check_setup
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
