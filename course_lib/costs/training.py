"""What the state of a model in training costs. Symbols and sources: the package's docstring."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .checks import check, check_counts

STAGES = (0, 1, 2, 3)


def zero_memory_bytes(psi: float, world_size: int, stage: int) -> float:
    """Bytes of model state per rank for `psi` parameters trained by Adam in mixed precision. [ZeRO]

    2 psi weights and 2 psi gradients in 16 bits, 12 psi optimizer state in 32 (master weights,
    momentum, variance). Stage 0 replicates all 16 psi; stage 1 shards the optimizer state over W
    ranks, 2 the gradients too, 3 the weights too. Activations and buffers come on top.
    """
    check(n=psi, world_size=world_size, names={"n": "psi"})
    _check_stage(stage)
    replicated = (16, 4, 2, 0)[stage]
    return replicated * psi + (16 - replicated) * psi / world_size


def zero_state_bytes(units: Sequence[int], world_size: int, stage: int, weight_bytes: int = 2,
                     moments: int = 2) -> dict[str, int]:
    """Bytes that a rank holds after the backward pass, by category, exactly: with padding.

    `units` are the sizes, in parameters, of what is gathered at once; each is padded to a multiple
    of W and cut into W shards. `moments` is what the optimizer keeps per parameter: 2 for Adam, 1
    for SGD with momentum, 0 for SGD. Weights of less than 4 bytes have a master of 4, which counts
    as optimizer state. With 2 and 2 the sum is zero_memory_bytes plus padding.
    """
    check(world_size=world_size, weight_bytes=weight_bytes)
    check_counts(0, moments=moments, **{f"units[{i}]": size for i, size in enumerate(units)})
    _check_stage(stage)
    shard = sum(math.ceil(size / world_size) for size in units)
    whole, padded = sum(units), shard * world_size
    per_weight = max(4, weight_bytes) * moments + (4 if weight_bytes < 4 else 0)
    return {"parameter": weight_bytes * (whole, padded, padded, shard)[stage],
            "gradient": weight_bytes * (whole if stage < 2 else shard),
            "optimizer": per_weight * (whole if stage == 0 else shard)}


def zero_sent_bytes(n: float, world_size: int, stage: int, micro_batches: int = 1) -> float:
    """Bytes that a rank sends per step, for n bytes of weights and gradients of the same type.

    (W-1)/W n times: 2 for stage 0 (one all-reduce) and 1 (reduce-scatter, all-gather), whatever
    the number A of micro-batches accumulated; A+1 for stage 2, which reduces in every backward
    pass; 3A for stage 3, which also gathers in every forward and backward. [ZeRO] for A = 1.
    """
    check(n=n, world_size=world_size, micro_batches=micro_batches)
    _check_stage(stage)
    return (2, 2, micro_batches + 1, 3 * micro_batches)[stage] * n * (world_size - 1) / world_size


def _check_stage(stage: int) -> None:
    if type(stage) is not int or stage not in STAGES:
        raise ValueError(f"stage={stage!r}: must be 0, 1, 2 or 3")
