"""Which all-reduce for which size: the closed forms, compared."""

from __future__ import annotations

import math
from typing import NamedTuple

from .all_reduce import recursive_doubling_all_reduce_seconds, ring_all_reduce_seconds
from .checks import check

LATENCY, BANDWIDTH, GAMMA = 60e-6, 2e9, 0.25e-9  # laptop(): processes on one machine, over gloo
SEGMENT = 2 << 20  # bytes of a chunk from which sending it in pieces pays


class Choice(NamedTuple):
    """What `all_reduce` runs: the algorithm's name, pieces per chunk, and why."""

    algorithm: str
    segments: int
    reason: str


def choose_all_reduce(n: float, world_size: int, latency: float = LATENCY,
                      bandwidth: float = BANDWIDTH, gamma: float = GAMMA) -> Choice:
    """The faster of recursive doubling and the ring for n bytes, by their closed forms.

    Recursive doubling takes log2 W steps but sends log2 W * n bytes; the ring takes 2(W-1) steps
    and sends 2(W-1)/W n. Short vectors are bound by latency, long ones by bandwidth. The default
    rates are a laptop's; pass those of another machine. Depends on nothing but its arguments, so
    that all ranks choose alike.
    """
    check(n=n, world_size=world_size)
    rates = (latency, bandwidth)
    doubling = recursive_doubling_all_reduce_seconds(n, world_size, *rates, gamma=gamma)
    ring = ring_all_reduce_seconds(n, world_size, *rates, gamma=gamma)
    if doubling <= ring:
        return Choice("recursive_doubling_all_reduce", 1, "fewer steps: latency decides")
    segments = max(1, math.ceil(n / world_size / SEGMENT))
    return Choice("ahead_ring_all_reduce", segments, "fewer bytes: bandwidth decides")
