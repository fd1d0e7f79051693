"""Lockstep: how large language models are trained in parallel, run for real on a laptop."""

from .group import Group
from .launch import run_ranks
from .trace import Trace

__all__ = ["Group", "Trace", "run_ranks"]
