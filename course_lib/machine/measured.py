"""The machine at hand: latency and bandwidth of its messages, fitted to real runs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence

from .model import Machine, check_whole

SIZES = tuple(4**k for k in range(1, 12))  # 4 bytes to 4 MiB
MATMUL_SIDE = 512
COPY_BYTES = 32 * 2**20


def fit_latency_bandwidth(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """(latency, bandwidth) of the line seconds = latency + bytes / bandwidth through measurements.

    Least squares of the relative errors: with absolute ones the largest messages alone would
    decide, and the latency would be noise. ValueError when there are fewer than two different
    sizes, a time is not above 0, or the times do not grow with the sizes.
    """
    sizes, seconds = list(sizes), list(seconds)
    if len(sizes) != len(seconds):
        raise ValueError(f"seconds has {len(seconds)} values: must have one per size, {len(sizes)}")
    if len(set(sizes)) < 2:
        raise ValueError(f"sizes={sizes}: must hold at least two different sizes")
    if not all(t > 0 for t in seconds):
        raise ValueError(f"seconds={seconds}: must all be above 0")
    weights = [1 / t**2 for t in seconds]
    total = sum(weights)
    n_mean = sum(w * n for w, n in zip(weights, sizes)) / total
    t_mean = sum(w * t for w, t in zip(weights, seconds)) / total
    together = sum(w * (n - n_mean) * (t - t_mean) for w, n, t in zip(weights, sizes, seconds))
    slope = together / sum(w * (n - n_mean) ** 2 for w, n in zip(weights, sizes))
    if not slope > 0:
        raise ValueError(f"seconds={seconds}: must grow with the sizes")
    return t_mean - slope * n_mean, 1 / slope


def measure_laptop(repeats: int = 20) -> Machine:
    """The machine this runs on, as a uniform Machine fitted to runs of two processes.

    Latency and bandwidth: messages of 4 bytes to 4 MiB go there and back, and a line is fitted to
    half the time (`fit_latency_bandwidth`). FLOP/s: a matrix product of side 512 in fp32. Memory
    bandwidth: a copy of 32 MiB, read and written. Both processes compute at once, as ranks do. Each
    figure is from the fastest of `repeats` trials, the one that other programs disturbed least. A
    rank's memory is the machine's divided by its cores, where the system tells.

    Takes a few seconds. ValueError when `repeats` is not an integer of at least 1.
    """
    from ..launch import run_ranks  # replay on other machines needs neither ranks nor torch

    check_whole("repeats", repeats)
    runs = run_ranks(_trials, 2, repeats, record=False).results
    latency, bandwidth = fit_latency_bandwidth(SIZES, runs[0]["one_way"])
    flops = sum(run["flops"] for run in runs) / 2
    memory_bandwidth = sum(run["memory_bandwidth"] for run in runs) / 2
    return Machine("this laptop", max(latency, 0.0), bandwidth, flops, memory_bandwidth,
                   memory_bytes=_memory_per_core())


def _trials(group, repeats: int) -> dict:
    """What one rank measures: seconds one way per size, FLOP/s, bytes per second of a copy."""
    import torch

    one_way = [_ping_pong(group, torch.zeros(n, dtype=torch.uint8), repeats) for n in SIZES]
    a = torch.rand(MATMUL_SIDE, MATMUL_SIDE)
    product = _fastest(lambda: a @ a, repeats)
    source = torch.zeros(COPY_BYTES, dtype=torch.uint8)
    target = torch.zeros_like(source)
    copy = _fastest(lambda: target.copy_(source), repeats)
    return {"one_way": one_way, "flops": 2 * MATMUL_SIDE**3 / product,
            "memory_bandwidth": 2 * COPY_BYTES / copy}


def _ping_pong(group, x, repeats: int) -> float:
    def there_and_back():
        if group.rank == 0:
            group.send(x, 1)
            group.recv(x, 1)
        else:
            group.recv(x, 0)
            group.send(x, 0)

    return _fastest(there_and_back, repeats) / 2


def _fastest(work, repeats: int) -> float:
    """Seconds of the fastest of `repeats` calls, after one that warms up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def _memory_per_core() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (os.cpu_count() or 1)
    except (AttributeError, OSError, ValueError):  # not every system tells
        return math.inf
