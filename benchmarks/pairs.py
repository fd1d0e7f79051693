"""Two or more ways of doing the same thing, measured in turn on the same machine, in a table.

Alternated and compared pair by pair, because a laptop's speed drifts by more than most differences.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable

import torch


def alternate(ways: dict[str, Callable[[], float]], pairs: int) -> dict[str, list[float]]:
    """Seconds of every way, `pairs` times each: a b, b a, a b ..., so that neither is always first.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(pairs):
        for name in list(ways) if i % 2 == 0 else reversed(ways):
            taken[name].append(ways[name]())
    return taken


def ratios(above: list[float], below: list[float]) -> list[float]:
    """above / below, pair by pair."""
    return [a / b for a, b in zip(above, below, strict=True)]


def spread(values: list[float], form: Callable[[float], str] = "{:.3g}".format) -> str:
    """"median (lower quartile .. upper quartile)"."""
    if len(values) < 2:
        return form(values[0])
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{form(statistics.median(values))} ({form(low)} .. {form(high)})"


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1e3:.3g} ms"


def percent(ratio: float) -> str:
    """How much more than 1 a ratio is."""
    return f"{100 * (ratio - 1):+.1f} %"


def print_table(title: str, head: list[str], rows: list[list[str]]) -> None:
    """A plain table with the machine that it was measured on."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?"
    print(f"\n{title}\n{os.cpu_count()} cores, load {load}, {platform.system()}, Python "
          f"{platform.python_version()}, torch {torch.__version__}; median (quartiles)\n")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
