"""ZeRO: data parallelism that keeps nothing W times (Rajbhandari et al. 2020, arXiv 1910.02054).

A *unit* is a module whose parameters are laid end to end, padded to a multiple of W, and cut into W
shards (zero_units.py). What each stage shards, and what a rank sends per step (Ψ parameters, in
elements, times (W-1)/W; A micro-batches are accumulated):

=====  ==================  ==========================================================  ===========
stage  sharded             communication                                               sent
=====  ==================  ==========================================================  ===========
1      optimizer states    after the backward passes: reduce-scatter, all-gather       2Ψ
2      and gradients       reduce-scatter unit by unit *during* each backward pass     (A+1)Ψ
3      and parameters      all-gather in forward and backward, reduce-scatter          3AΨ
=====  ==================  ==========================================================  ===========

Stage 2 lowers the peak only because a unit's gradients leave while those of earlier units do not
exist yet. Stage 3 gathers one unit at a time, each one twice, the first too although its backward
may not need it; activations stay as they are, ZeRO does not shard them.

Mixed precision: where the parameters have 16 bits, each rank keeps its shard a second time in 32,
the *master*, which the optimizer updates. Gradients travel, and are kept, in the parameters' type;
further micro-batches are added in 32 bits. What is written into parameters between two steps, as by
`model.load_state_dict` on every rank, goes into the shards and masters too.

Frozen parameters (requires_grad=False) stay outside: whole on every rank, never sent or updated.
What is frozen when the strategy is made must stay so, and the rest must not be frozen later.

The optimizer is any torch.optim class over the rank's own shards: it never sees the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from .collectives import all_reduce
from .data_parallel import check_max_norm, hold_states, trainable
from .group import Group
from .zero_units import Gathered, Unit, own_sum, own_sum_by_all_reduce

MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


class Zero1:
    """Stage 1. Use like an optimizer: `loss.backward(); zero.step()`. Gradients are whole until
    then.
    """

    make_unit, reduce = Unit, staticmethod(own_sum)

    def __init__(self, model: nn.Module, group: Group, make_optimizer: MakeOptimizer):
        self.group = group
        self.units = [self.make_unit(module, group, f"unit {i}")
                      for i, module in enumerate(units_of(model)) if trainable(module)]
        self.optimizer = make_optimizer([unit.shard for unit in self.units])

    def step(self, max_norm: float | None = None) -> None:
        """After: every rank holds the same updated parameters; gradients are gone.

        With `max_norm`, gradients are clipped by their global norm.
        """
        self.finish()
        update_shards(self.units, self.optimizer, self.group, max_norm)
        for unit in self.units:
            unit.gather_parameters()

    def finish(self) -> None:
        """After: the gradients are in their shards."""
        for unit in self.units:
            unit.reduce_gradients(self.reduce)


class Zero1ByAllReduce(Zero1):
    """The mistake: all-reduces whole gradients to use a part of them, 3Ψ in the place of 2Ψ."""

    reduce = staticmethod(own_sum_by_all_reduce)


class Zero2(Zero1):
    """Stage 2: a unit's gradients are reduced and freed as soon as its last one has been computed.

    And as soon as all units after it are reduced: so that the order is the same on all ranks,
    whatever the order of the hooks. At the end of the pass what got no gradient is reduced as zero:
    every pass of every rank reduces every unit once, if it brings a gradient at all.
    """

    def __init__(self, model: nn.Module, group: Group, make_optimizer: MakeOptimizer):
        super().__init__(model, group, make_optimizer)
        self.left: list[Unit] = []  # units that this backward pass has not yet reduced
        for unit in self.units:
            for parameter in unit.parameters:
                parameter.register_post_accumulate_grad_hook(partial(self.arrived, unit))

    def arrived(self, unit: Unit, parameter: nn.Parameter) -> None:
        """A gradient is complete: reduce the units whose turn it is."""
        if unit not in self.left:  # the first gradient of a pass, or one after its turn
            self.reduce_from(0)
            self.left = list(self.units)
            at_the_end_of_backward(partial(self.reduce_from, 0))
        unit.missing.discard(parameter)
        while self.left and not self.left[-1].missing:
            self.left.pop().reduce_gradients()

    def finish(self) -> None:
        """After: as in stage 1. The backward passes have done it."""

    def reduce_from(self, first: int) -> None:
        """Reduce the units from number `first` on that this backward pass has left."""
        while len(self.left) > first:
            self.left.pop().reduce_gradients()


class Zero3(Zero2):
    """Stage 3: between uses a rank holds its shards and nothing else of the parameters.

    A unit is gathered before its forward and again before its backward, and released after each.
    With `prefetch`, the next unit's all-gather and the last one's reduce-scatter run on a
    background stream meanwhile; then two units are held at a time instead of one.

    Outside of their unit's forward and backward parameters have no elements. Inside `with
    zero.whole():` they are there: for `model.state_dict()`, which then gives copies, and
    `model.load_state_dict()`. Elsewhere both raise RuntimeError.
    """

    make_unit = Gathered

    def __init__(self, model: nn.Module, group: Group, make_optimizer: MakeOptimizer,
                 prefetch: bool = False):
        super().__init__(model, group, make_optimizer)
        stream = group.stream("comm") if prefetch else None
        for i, unit in enumerate(self.units):
            unit.stream = stream
            unit.guard()
            unit.watch(after=self.units[i + 1] if i + 1 < len(self.units) else None,
                       before=self.units[i - 1] if i > 0 else None,
                       through=partial(self.reduce_from, i + 1))

    def step(self, max_norm: float | None = None) -> None:
        """After: the own shards are updated. Nothing is gathered: the next forward does that."""
        self.finish()
        update_shards(self.units, self.optimizer, self.group, max_norm)

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Inside: every rank holds all parameters. After: its shards, of what they then are.

        Every rank enters and leaves. Cost: all-gather of every unit.
        """
        for unit in self.units:
            unit.unshard()
        try:
            yield
        finally:
            for unit in self.units:
                unit.follow()
                unit.release()

    def finish(self) -> None:
        """After: as in stage 2; the background has reduced them all."""
        for unit in self.units:
            unit.reduced()


def at_the_end_of_backward(function: Callable[[], None]) -> None:
    """Call it when the backward pass that is running ends (as torch's own DDP and FSDP do)."""
    torch.autograd.Variable._execution_engine.queue_callback(function)


def clip_gradients(shards: list[nn.Parameter], max_norm: float, group: Group) -> Tensor:
    """Scale all gradients so that their *global* norm is at most max_norm; returns the norm before.

    Each rank knows only its shards: the squares are summed over ranks first. Cost: 8 bytes.
    """
    check_max_norm(max_norm)
    gradients = [shard.grad for shard in shards if shard.grad is not None]
    squares = torch.zeros((), dtype=torch.float64, device=group.device)
    for gradient in gradients:
        squares += (gradient.double() ** 2).sum()
    total = all_reduce(squares, group, name="norm").sqrt()
    scale = (max_norm / (total + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_
    for gradient in gradients:
        gradient.mul_(scale)
    return total


def update_shards(units: list[Unit], optimizer: torch.optim.Optimizer, group: Group,
                  max_norm: float | None) -> None:
    """Clip the shards' gradients by the global norm, update the shards, drop the gradients."""
    for unit in units:
        unit.follow()
        if unit.gradient is not None:
            unit.shard.grad = unit.gradient.to(unit.shard.dtype)
            if unit.shard.grad is not unit.gradient:
                group.hold(unit.shard.grad, "buffer", f"{unit.name} gradient in 32 bits")
            unit.gradient = None
    if max_norm is not None:
        clip_gradients([unit.shard for unit in units], max_norm, group)
    with group.label("optimizer"):
        optimizer.step()
    optimizer.zero_grad()
    for unit in units:
        if unit.shard.dtype != unit.part.dtype:
            unit.part.copy_(unit.shard.detach())
    hold_states(optimizer, {unit.shard: unit.name for unit in units}, group)


def units_of(model: nn.Module) -> list[nn.Module]:
    """The model's own `units`, or itself. ValueError if a parameter is in none or in two of
    them, or a unit has parameters of two dtypes.
    """
    units = list(getattr(model, "units", [model]))
    inside = [p for unit in units for p in unit.parameters()]
    if len(inside) != len(set(inside)) or set(inside) != set(model.parameters()):
        raise ValueError("model.units: every parameter must be in exactly one unit (a tied head "
                         "shares its weight with the embedding: put both in one unit)")
    for i, unit in enumerate(units):
        if len(dtypes := {str(p.dtype)[6:] for p in trainable(unit).values()}) > 1:
            raise ValueError(f"model.units[{i}], a {type(unit).__name__}, has parameters of "
                             f"{' and '.join(sorted(dtypes))}: must be of one dtype in each unit, "
                             "because they lie in one tensor")
    return units
