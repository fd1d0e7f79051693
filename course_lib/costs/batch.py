"""The batch: how much of it helps. Source: McCandlish and others 2018, An Empirical Model of
Large-Batch Training, arXiv 1812.06162 (there: B_simple, B_noise, B_crit).

Batches count examples, or tokens, of one step; squared norms are those of the mean gradient.
"""

from __future__ import annotations

from .checks import check


def noise_scale(small: float, big: float, small_squared_norm: float,
                big_squared_norm: float) -> float:
    """B_simple = tr(Sigma) / |G|^2: the batch at which noise and gradient are equally large.

    From the mean squared norms of gradients over batches of two sizes, E|G_B|^2 = |G|^2 +
    tr(Sigma) / B. Both estimates are unbiased, their ratio is not: average the norms over many
    batches first. [appendix A.1] ValueError when the sizes do not differ, or an estimate of |G|^2
    is not above 0 or of tr(Sigma) below 0, as single batches give.
    """
    check(small_batch=small, names={"small_batch": "small"}, big=big,
          small_squared_norm=small_squared_norm, big_squared_norm=big_squared_norm)
    if not small < big:
        raise ValueError(f"small={small}: must be less than big={big}")
    signal = (big * big_squared_norm - small * small_squared_norm) / (big - small)
    noise = (small_squared_norm - big_squared_norm) / (1 / small - 1 / big)
    if not signal > 0 or noise < 0:
        raise ValueError(f"small_squared_norm={small_squared_norm}: must be at least "
                         f"big_squared_norm={big_squared_norm} and below big / small times it; "
                         "else |G|^2 or tr(Sigma) comes out negative: average more batches")
    return noise / signal


def steps_needed(batch: float, critical: float, least: float) -> float:
    """Steps to a given loss: S = S_min (1 + B_crit / B); `least` is S_min, of an endless batch."""
    check(batch=batch, critical=critical, least=least)
    return least * (1 + critical / batch)


def examples_needed(batch: float, critical: float, least: float) -> float:
    """Examples to a given loss: E = E_min (1 + B / B_crit); `least` is E_min, of tiny batches.

    B_crit = E_min / S_min, and (S/S_min - 1)(E/E_min - 1) = 1: at B_crit both are doubled.
    """
    check(batch=batch, critical=critical, least=least)
    return least * (1 + batch / critical)
