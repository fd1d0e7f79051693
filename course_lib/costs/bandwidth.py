"""Figures made from seconds: bus bandwidth, and the size at which two algorithms cost the same."""

from __future__ import annotations

import math
from collections.abc import Callable

from .checks import check

PROBE_BYTES = 2.0**40  # large enough that latencies do not blur the slope of a cost


BUS_FACTORS = {  # of nccl-tests, for W ranks
    "all_reduce": lambda W: 2 * (W - 1) / W,
    "reduce_scatter": lambda W: (W - 1) / W,
    "all_gather": lambda W: (W - 1) / W,
    "all_to_all": lambda W: (W - 1) / W,
    "broadcast": lambda W: 1.0,
    "reduce": lambda W: 1.0,
}


def bus_bandwidth(op: str, n: float, world_size: int, seconds: float) -> float:
    """Bytes per second by the convention of nccl-tests: n / seconds times a factor of the op. [NT]

    The factor makes the figure that of the wire, whatever W: 2 (W - 1) / W for an all-reduce,
    (W - 1) / W for reduce-scatter, all-gather and all-to-all (n the total size), 1 for broadcast
    and reduce.
    """
    check(n=n, world_size=world_size)
    if op not in BUS_FACTORS:
        raise ValueError(f"op={op!r}: must be one of {', '.join(BUS_FACTORS)}")
    if not seconds > 0:
        raise ValueError(f"seconds={seconds}: must be above 0")
    return n / seconds * BUS_FACTORS[op](world_size)


def crossover_bytes(at_small: Callable[[float], float], at_large: Callable[[float], float]
                    ) -> float:
    """The size in bytes from which `at_large` takes no longer than `at_small`.

    Both are costs as functions of n alone, such as `lambda n: ring_all_reduce_seconds(n, 8, ...)`,
    and straight lines in n, as all closed forms here are: A + n B. Equal at n = (A_large - A_small)
    / (B_small - B_large). Returns 0.0 if `at_large` is never slower, inf if `at_small` never is.
    """
    start_small, start_large = at_small(0.0), at_large(0.0)
    slope_small = (at_small(PROBE_BYTES) - start_small) / PROBE_BYTES
    slope_large = (at_large(PROBE_BYTES) - start_large) / PROBE_BYTES
    behind, gain = start_large - start_small, slope_small - slope_large
    if behind <= 0 <= gain:
        return 0.0
    if behind <= 0:
        raise ValueError("at_small, at_large: at_large is faster at size 0 and grows faster; "
                         "exchange the two")
    return behind / gain if gain > 0 else math.inf
