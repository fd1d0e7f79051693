"""All-reduces of `race_all_reduce`: by dry run, so that 64 ranks need no processes, and replay."""

from __future__ import annotations

from dataclasses import replace as variant
from functools import lru_cache

import torch

from .. import collectives
from ..collectives.recursive import most_square
from ..dry import dry_run
from ..machine import dgx_a100, dgx_b200, dgx_h100, laptop, pcie_server, tpu_v5p, two_laptops
from ..timeline import Timeline
from ..virtual_time import replay

RACERS = ("naive", "tree", "ring", "hierarchical")
ALGORITHMS = (*RACERS, "recursive_doubling", "rabenseifner", "torus")
GPUS = 8  # of a node or server
MACHINES = {  # as many nodes as the ranks need
    "DGX H100": lambda W: dgx_h100(-(-W // GPUS)),
    "DGX A100": lambda W: dgx_a100(-(-W // GPUS)),
    "DGX B200": lambda W: dgx_b200(-(-W // GPUS)),
    "PCIe servers": lambda W: pcie_server(servers=-(-W // GPUS)),
    "TPU v5p torus": lambda W: tpu_v5p(most_square(W)),
    "laptop": lambda W: laptop(),
    "two laptops": lambda W: two_laptops(-(-W // 2)),
}


def all_reduce_by(algorithm: str, x: torch.Tensor, group, inner: int) -> torch.Tensor:
    """The all-reduce of that name. `inner` ranks are a node, or a row of the torus."""
    W = group.size
    if algorithm == "hierarchical":
        node = group.split([list(range(first, first + inner)) for first in range(0, W, inner)])
        rail = group.split([list(range(place, W, inner)) for place in range(inner)])
        return collectives.hierarchical_all_reduce(x, node, rail)
    if algorithm == "torus":
        return collectives.torus_all_reduce(x, group, (W // inner, inner))
    return getattr(collectives, f"{algorithm}_all_reduce")(x, group)


def ranks_inside(machine, world_size: int) -> int:
    """How many ranks are a node: those of the machine's closest level, or about the square root
    where that level holds all ranks.
    """
    close = machine.shape[-1] if hasattr(machine, "shape") else machine.levels[0].ranks
    return close if close and close < world_size else most_square(world_size)[1]


@lru_cache(maxsize=256)
def raced(algorithm: str, machine: str, ranks: int, nbytes: int) -> Timeline:
    """An all-reduce of `nbytes` bytes of fp32 on a machine of MACHINES, replayed.

    Additions are free, as in the closed forms without gamma.
    """
    where = variant(MACHINES[machine](ranks), gamma=0.0)
    inner = ranks_inside(where, ranks)
    trace = dry_run(lambda group: all_reduce_by(algorithm, torch.empty(nbytes // 4), group, inner),
                    ranks, record="calls")
    return replay(trace, where)
