"""Closed forms of pipeline schedules; the tests hold them against replayed schedules.

p ranks, m micro-batches, v stages a rank; F, I, W: seconds of the three ops of a *whole rank* (all
its stages together) for one micro-batch, S = F + I + W.
"""

from __future__ import annotations

NAMES = ("naive", "gpipe", "one_f_one_b", "interleaved_1f1b", "looped_bfs", "zb_h1", "zb_h2",
         "zb_v", "dualpipe", "dualpipe_v")


def bubble_seconds(name: str, p: int, m: int, F: float = 1.0, I: float = 1.0,  # noqa: E741
                   W: float = 1.0, latency: float = 0.0, v: int = 1,
                   overlapped: float | None = None) -> float:
    """Idle seconds of the rank that idles most: with it and m S, both bubble definitions follow.

    Counted in its device span; for a DualPipe whose pairs are cheaper than their parts, so that
    ranks compute for unequally long, in the makespan.

    name: of the builder. latency: of a transfer, small enough to hide behind computation, with p
    dividing m. overlapped: seconds of a pair F&B (default F + I + W).
    Holds for m >= p, zb_h2 and zb_v for m >= 2p-1, zb_v for I >= W and I >= F, dualpipe for F = I
    (an upper bound for I > F). ValueError where no form is known: zb_v and both DualPipes with
    transfers, an unknown name.
    Sources: Huang 2018; Narayanan 2021; Qi 2023, table 2; DeepSeek-V3, table 2. The terms in
    latency, and zb_v at unequal times, are derived here.
    """
    S = F + I + W
    pair = S if overlapped is None else overlapped
    forms = {  # idle seconds with free transfers, and transfers that are not hidden
        "naive": ((p - 1) * m * S, 2 * (p - 1)),
        "gpipe": ((p - 1) * S, 2 * (p - 1)),
        "one_f_one_b": ((p - 1) * S, 2 * (p - 1) * (m / p + 1) - 2),
        "interleaved_1f1b": ((p - 1) * S / v, 2 * p * v - 2),
        "looped_bfs": ((p - 1) * S / v, None),
        "zb_h1": ((p - 1) * (F + I - W), 4 * (p - 1) - 2 * (m == p)),
        "zb_h2": ((p - 1) * (F + I - 2 * W), 2 * (p - 1)),
        "zb_v": ((p - 1) * (I - W), None),
        "dualpipe": ((p / 2 - 1) * (pair + I - 2 * W), None),
        "dualpipe_v": ((p - 1) * (pair + I - 2 * W) / 2, None),
    }
    _check_name(name)
    idle, transfers = forms[name]
    if p == 1:
        return 0.0
    if transfers is None and latency:
        raise ValueError(f"latency={latency}: no closed form of {name} with transfer time is known")
    return idle + (transfers * latency if latency else 0.0)


def peak_micro_batches(name: str, p: int, m: int, rank: int, v: int = 1, until_i: float = 1.0,
                       until_w: float = 1.0) -> float:
    """Most micro-batches that a rank holds, each `until_i` until its I and `until_w` until its W.

    In activations of one micro-batch on a whole rank. Holds for m >= p, zb_h2, zb_v and both
    DualPipes (these with until_w = until_i) for m >= 2p. Source: Qi 2023, table 2; Narayanan 2021.
    """
    _check_name(name)
    everything = {
        "naive": m, "gpipe": m, "looped_bfs": m,
        "one_f_one_b": p - rank,
        "interleaved_1f1b": min(m, (2 * (p - 1 - rank) + (v - 1) * p + 1) / v),
        "zb_v": p, "dualpipe": p + 1, "dualpipe_v": p + 0.5,
    }
    if name in everything:
        return everything[name] * until_i
    ahead = rank if name == "zb_h1" else 2 * rank  # micro-batches whose W is put off
    return (p - rank if name == "zb_h1" else 2 * (p - rank) - 1) * until_i + ahead * until_w


def _check_name(name: str) -> None:
    if name not in NAMES:
        raise ValueError(f"name={name!r}: must be one of {', '.join(NAMES)}")
