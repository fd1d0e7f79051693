"""The real runs that the ZeRO player plays: one small model, trained for two steps in each stage.

The parameters have 16 bits, the optimizer's master weights and moments 32: 16 bytes per parameter.
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial

import cloudpickle
import torch
from torch import Tensor, nn

from ..collectives import ring_all_reduce
from ..group import Group
from ..launch import run_ranks
from ..model import Config, build, next_token_loss
from ..zero import Zero1, Zero1ByAllReduce, Zero2, Zero3, update_shards

GPT_CONFIG = Config(vocab=32, seq=8, layers=2, dim=16, heads=2)
MODELS = ("12 parameters", "GPT")


class Twelve(nn.Sequential):
    """The notes' 12 parameters: three layers of 2 x 2 weights, x [B, 2] -> [B, 2]."""

    def __init__(self):
        super().__init__(*(nn.Linear(2, 2, bias=False) for _ in range(3)))

    @property
    def units(self) -> list[nn.Module]:
        return list(self)


class Replicated(Zero1):
    """Stage 0, plain data parallelism: whole gradients are all-reduced, nothing is sharded."""

    def __init__(self, model: nn.Module, group: Group, make_optimizer):
        self.world = group
        super().__init__(model, group.split([[rank] for rank in range(group.size)]),
                         make_optimizer)

    def step(self, max_norm: float | None = None) -> None:
        """After: every rank has made the same update of everything."""
        for unit in self.units:
            flat = unit.take_gradients()
            ring_all_reduce(flat, self.world, op="mean", name=unit.name)
            unit.add_gradient(flat)
        update_shards(self.units, self.optimizer, self.group, max_norm)


STAGES = {  # what a learner can choose; the numbers are the paper's stages
    0: ("DDP", Replicated), 1: ("ZeRO-1", Zero1), 2: ("ZeRO-2", Zero2), 3: ("ZeRO-3", Zero3),
    "3 prefetch": ("prefetching ZeRO-3", partial(Zero3, prefetch=True)),
    "1 all-reduce": ("all-reducing ZeRO-1", Zero1ByAllReduce),
}


def make(model: str) -> nn.Module:
    """The model of that name in 16 bits, with the same weights on every rank."""
    if model == "GPT":
        return build(GPT_CONFIG).bfloat16()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Twelve().bfloat16()


def loss_of(net: nn.Module, batch: Tensor) -> Tensor:
    """A number to make small."""
    return next_token_loss(net, batch) if batch.dtype == torch.int64 else net(batch).square().mean()


def batch_of(model: str, rank: int, step: int) -> Tensor:
    """Another batch on every rank, and in every step."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    if model == "GPT":
        return torch.randint(GPT_CONFIG.vocab, (2, GPT_CONFIG.seq + 1), generator=generator)
    return torch.randn(4, 2, generator=generator).bfloat16()


def train(group: Group, stage, model: str = MODELS[0], steps: int = 2) -> list[list[int]]:
    """Train, with marks where each step begins and ends. Returns elements of each unit."""
    net = make(model)
    zero = STAGES[stage][1](net, group, partial(torch.optim.Adam, lr=0.1))
    sizes = [sum(unit.sizes) for unit in zero.units]
    for step in range(steps):
        batch = batch_of(model, group.rank, step)
        group.mark("step begins")
        with group.label("forward"):
            loss = loss_of(net, batch)
        with group.label("backward"):
            loss.backward()
        del loss
        group.mark("after backward")
        zero.step()
        group.mark("step ends")
    return sizes


@lru_cache(maxsize=64)
def recorded(stage, ranks: int, model: str = MODELS[0]):
    """The Run of `train` in real processes."""
    # The ranks need what is written here, and not all of viz, which would take them a second.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return run_ranks(train, ranks, stage, model)
