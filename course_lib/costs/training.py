"""What the state of a model in training costs. Symbols and sources: the package's docstring."""

from __future__ import annotations

from .checks import check


def zero_memory_bytes(psi: float, world_size: int, stage: int) -> float:
    """Bytes of model state per rank for `psi` parameters trained by Adam in mixed precision. [ZeRO]

    2 psi weights and 2 psi gradients in 16 bits, 12 psi optimizer state in 32 (master weights,
    momentum, variance). Stage 0 replicates all 16 psi; stage 1 shards the optimizer state over W
    ranks, 2 the gradients too, 3 the weights too. Activations and buffers come on top.
    """
    check(n=psi, world_size=world_size, names={"n": "psi"})
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"stage={stage}: must be 0, 1, 2 or 3")
    replicated = (16, 4, 2, 0)[stage]
    return replicated * psi + (16 - replicated) * psi / world_size
