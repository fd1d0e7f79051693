"""Lockstep: how large language models are trained in parallel, run for real on a laptop."""

from .dry import dry_run
from .group import Group
from .launch import run_ranks
from .trace import Trace
from .virtual_time import replay

__all__ = ["Group", "Trace", "dry_run", "replay", "run_ranks"]
