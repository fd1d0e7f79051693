"""The all-reduce that strategies call: it chooses its algorithm by size and number of ranks."""

from __future__ import annotations

import torch

from ..calls import collective
from ..costs import choose_all_reduce
from ..group import Group
from .ahead import ahead_ring_all_reduce
from .checked import check_tensor
from .recursive import recursive_doubling_all_reduce


@collective("shape", "op")
def all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks.

    Short vectors go by recursive doubling, long ones around the ring: `costs.choose_all_reduce`
    says which and why, and the trace shows it inside the call. Cost: as the one chosen.
    """
    check_tensor(x, group, op)
    choice = choose_all_reduce(x.numel() * x.element_size(), group.size)
    if choice.algorithm == "recursive_doubling_all_reduce":
        return recursive_doubling_all_reduce(x, group, op)
    return ahead_ring_all_reduce(x, group, choice.segments, op)
