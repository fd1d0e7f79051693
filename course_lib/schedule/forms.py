"""Closed forms of pipeline schedules; the tests hold them against replayed schedules.

p ranks, m micro-batches, v stages a rank; F, I, W: seconds of the three ops of a *whole rank* (all
its stages together) for one micro-batch, S = F + I + W.
"""

from __future__ import annotations

import math

from .builders import _check, _check_multiple
from .memory import check_until
from .timing import _positive
from .two_way import check_dual

NAMES = ("naive", "gpipe", "one_f_one_b", "interleaved_1f1b", "looped_bfs", "zb_h1", "zb_h2",
         "zb_v", "dualpipe", "dualpipe_v")


def bubble_seconds(name: str, p: int, m: int, F: float = 1.0, I: float = 1.0,  # noqa: E741
                   W: float = 1.0, latency: float = 0.0, v: int = 1,
                   overlapped: float | None = None, printed: bool = False) -> float:
    """Idle seconds of the rank that idles most: with it and m S, both bubble definitions follow.

    Counted in its device span; for a DualPipe whose pairs are cheaper than their parts, so that
    ranks compute for unequally long, in the makespan.

    name: of the builder. latency: of a transfer. overlapped: seconds of a pair F&B (default S).
    Holds for every p and m that the builder takes and all times, but zb_h2 with m < 2p-1 for
    min(F, W) <= I; zb_v for I >= F and I >= W, with m < 2p-1 also F >= W; both DualPipes for
    F = I >= W and F + I <= overlapped <= S. ValueError outside. With transfers:
    `_exposed_transfers`.
    printed: 2pv-p-2 transfers of interleaved_1f1b, not 2pv-2. So many give the rates printed in Qi
    2023, table 5; the replayed order waits for p more.
    Sources: Huang 2018; Narayanan 2021; Qi 2023, table 2, whose forms these are at W <= F, m >= p
    (2p-1 for zb_h2); DeepSeek-V3, table 2. The rest is derived here and found by replay.
    """
    _check_case(name, p, m, v)
    for key, value in (("F", F), ("I", I), ("W", W)):
        _positive(key, value)
    if not 0 <= latency < math.inf:
        raise ValueError(f"latency={latency}: must be at least 0 and finite")
    S, fill, least = F + I + W, (p - 1) * (F + I), min(F, W)
    pair = S if overlapped is None else overlapped
    _check_times(name, p, m, F, I, W, pair)
    idle = {
        "naive": (p - 1) * m * S, "gpipe": (p - 1) * S, "one_f_one_b": (p - 1) * S,
        "interleaved_1f1b": (p - 1) * S / v, "looped_bfs": (p - 1) * S / v,
        "zb_h1": fill - (min(m, p) - 1) * least,
        "zb_h2": max(0.0, fill - (min(m, 2 * p - 1) - 1) * least),
        "zb_v": max(fill - (min(m, p) - 1) * F - max(0, min(m, 2 * p - 1) - p) * W,
                    (p - 1) * (I - F) / 2),
        "dualpipe": (p / 2 - 1) * (pair + I - 2 * W),
        "dualpipe_v": (p - 1) / 2 * (pair + I - 2 * W),
    }[name]
    if not latency or p == 1:
        return float(idle)
    return idle + latency * (_exposed_transfers(name, p, m, F, I, W, v, latency)
                             - (p if printed and name == "interleaved_1f1b" else 0))


def _exposed_transfers(name: str, p: int, m: int, F: float, I: float, W: float,  # noqa: E741
                       v: int, latency: float) -> float:
    """Transfers that the rank which idles most waits for. ValueError where no form is known.

    Known for a latency of at most min(F, I+W), of a stage's half of it for interleaved_1f1b, of
    min(F, I, W) / 2 for zb_h1 and zb_h2; one_f_one_b for p dividing m, zb_h1 for m >= p and
    W <= F, zb_h2 for m >= 2p-1, W <= F and 2 W <= F + I. Derived here.
    """
    whole, part = min(F, I + W), min(F, I, W) / 2
    forms = {  # transfers, the largest latency, what else must hold and whether it does
        "naive": (2 * (p - 1), whole, "", True), "gpipe": (2 * (p - 1), whole, "", True),
        "one_f_one_b": (2 * (p - 1) * (m / p + 1) - 2, whole, "p dividing m", m % p == 0),
        "interleaved_1f1b": (2 * p * v - 2, whole / v / 2, "", True),
        "zb_h1": (4 * (p - 1) - 2 * (m == p), part, "m >= p and W <= F", m >= p and W <= F),
        "zb_h2": (2 * (p - 1), part, "m >= 2p-1, W <= F and 2 W <= F + I",
                  m >= 2 * p - 1 and W <= F and 2 * W <= F + I),
    }
    if name not in forms:
        raise ValueError(f"latency={latency}: no closed form of {name} with transfer time is known")
    transfers, most, rule, holds = forms[name]
    if latency > most:
        raise ValueError(f"latency={latency}: must be at most {most:g}, so that computation hides "
                         f"it; else no closed form of {name} is known")
    if not holds:
        raise ValueError(f"latency={latency}, p={p}, m={m}, F={F}, I={I}, W={W}: the closed form "
                         f"of {name} with transfer time needs {rule}")
    return transfers


def peak_micro_batches(name: str, p: int, m: int, rank: int, v: int = 1, until_i: float = 1.0,
                       until_w: float = 1.0) -> float:
    """Most micro-batches that a rank holds, each `until_i` until its I and `until_w` until its W.

    In activations of one micro-batch on a whole rank. Holds for every p and m that the builder
    takes; ValueError for others, and unless 0 <= until_w <= until_i. Source: Qi 2023, table 2, and
    Narayanan 2021 for m >= p (2p-1 for zb_h2 and zb_v); below that, derived here.
    """
    _check_case(name, p, m, v)
    if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < p:
        raise ValueError(f"rank={rank}: must be in 0..{p - 1}")
    check_until(until_i, until_w)
    if name in ("zb_h1", "zb_h2"):
        put_off = rank if name == "zb_h1" else 2 * rank  # micro-batches whose W comes later
        whole = min(m, p - rank if name == "zb_h1" else 2 * (p - rank) - 1)
        return whole * until_i + min(put_off, m - whole) * until_w
    return until_i * {
        "naive": m, "gpipe": m, "looped_bfs": m, "one_f_one_b": min(m, p - rank),
        "interleaved_1f1b": min(m, (2 * (p - 1 - rank) + (v - 1) * p + 1) / v),
        "zb_v": min(m, p, (m + 1 + rank) / 2), "dualpipe": p + 1, "dualpipe_v": p + 0.5,
    }[name]


def _check_case(name: str, p: int, m: int, v: int) -> None:
    """ValueError for what the builder does not take."""
    if name not in NAMES:
        raise ValueError(f"name={name!r}: must be one of {', '.join(NAMES)}")
    _check(p, m, v)
    if name in ("interleaved_1f1b", "looped_bfs"):
        _check_multiple(p, m)
    if name in ("dualpipe", "dualpipe_v"):
        check_dual(name, p, m)


def _check_times(name: str, p: int, m: int, F: float, I: float, W: float,  # noqa: E741
                 pair: float) -> None:
    """ValueError for op times of which no closed form of the bubble is known."""
    few = m < 2 * p - 1
    holds, rule = {
        "zb_h2": (not few or min(F, W) <= I, "F <= I or W <= I where m < 2p-1"),
        "zb_v": (F <= I and W <= (F if few else I), "F <= I and W <= I, W <= F where m < 2p-1"),
    }.get(name, (True, ""))
    if name in ("dualpipe", "dualpipe_v"):
        holds = F == I >= W and F + I <= pair <= F + I + W
        rule = f"F = I >= W, and F + I <= overlapped <= F + I + W (overlapped={pair})"
    if not holds:
        raise ValueError(f"p={p}, m={m}, F={F}, I={I}, W={W}: the closed form of {name} needs "
                         f"{rule}")
