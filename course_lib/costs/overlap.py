"""Communication beside computation: what stays exposed, and from which size on nothing does.

Seconds are given per unit (a bucket, a layer), in the order of the forward pass. A background
stream does one thing after another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .checks import check, check_units


def ddp_exposed_seconds(backward: Sequence[float], all_reduce: Sequence[float]) -> float:
    """By how much a backward pass whose gradients are all-reduced meanwhile takes longer.

    The last unit's gradients come first. An all-reduce starts when its unit's backward and the
    all-reduce before it are over; the first unit's is always exposed. Without overlap: the sum.
    """
    check_units(backward=backward, all_reduce=all_reduce)
    computed = reduced = 0.0
    for seconds, moving in zip(reversed(backward), reversed(all_reduce), strict=True):
        computed += seconds
        reduced = max(reduced, computed) + moving
    return reduced - computed


def zero3_exposed_seconds(forward: Sequence[float], backward: Sequence[float],
                          gather: Sequence[float], reduce: Sequence[float],
                          prefetch: bool = True) -> float:
    """By how much forward and backward of ZeRO stage 3 take longer than their computation.

    With prefetch, the next unit is gathered (and in the backward pass the last one reduced) while a
    unit computes. The first gather of each pass and the last reduction are exposed.
    Without: all gathers, twice, and all reductions.
    """
    check_units(forward=forward, backward=backward, gather=gather, reduce=reduce)
    if not prefetch:
        return 2 * sum(gather) + sum(reduce)
    exposed = gather[0] + gather[-1] + reduce[0]
    exposed += sum(max(0.0, g - f) for f, g in zip(forward, gather[1:]))
    moving = [r + g for r, g in zip([*reduce[1:], 0.0], [0.0, *gather])]
    return exposed + sum(max(0.0, m - b) for b, m in zip(backward, moving, strict=True))


def hiding_tokens(flops: float, bandwidth: float, world_size: int | None = None,
                  weight_bytes: float = 2) -> float:
    """Tokens per rank from which on ZeRO-3's, and DDP's, communication hides: C / bandwidth. [SB]

    A forward computes 2 FLOPs per parameter and token while `weight_bytes` are gathered; a
    backward 4 while a gather and a reduction move twice that. So tokens = C / bandwidth *
    weight_bytes / 2, times (W-1)/W for a group of W ranks (None: very many). `bandwidth` is that
    of one rank's part in a collective: on a torus, of all links that it uses.
    """
    check(flops=flops, bandwidth=bandwidth, weight_bytes=weight_bytes,
          world_size=1 if world_size is None else world_size)
    ranks = 1.0 if world_size is None else (world_size - 1) / world_size
    return flops / bandwidth * weight_bytes / 2 * ranks


def hiding_parameters(tokens: float, world_size: int, flops: float, latency: float,
                      bandwidth: float, weight_bytes: float = 2) -> float:
    """Parameters of a unit below which ZeRO-3's latency is exposed, at that many tokens per rank.

    A ring gathers in (W-1)(latency + weight_bytes psi / (W bandwidth)), a forward takes
    2 psi tokens / C. Infinite when there are too few tokens for a unit of any size.
    """
    check(flops=flops, bandwidth=bandwidth, world_size=world_size, latency=latency, tokens=tokens,
          weight_bytes=weight_bytes)
    spare = 2 * tokens / flops - (world_size - 1) / world_size * weight_bytes / bandwidth
    return (world_size - 1) * latency / spare if spare > 0 else math.inf
