"""ZeRO: data parallelism that keeps nothing W times (Rajbhandari et al. 2020, arXiv 1910.02054).
1910.02054).

A *unit* is a module whose parameters are laid end to end, padded to a multiple of W, and cut into W
shards. What each stage shards, and what moves per step and rank (Ψ parameters, elements, times
(W-1)/W):

=====  ================================  =====================================================
stage  sharded                           communication
=====  ================================  =====================================================
1      optimizer states                  reduce-scatter gradients, all-gather parameters: 2Ψ
2      and gradients                     the same 2Ψ, unit by unit *during* the backward pass
3      and parameters                    all-gather in forward and backward, reduce-scatter: 3Ψ
=====  ================================  =====================================================

Stage 2 lowers the peak only because a unit's gradients leave while those of earlier units do not
exist yet. Stage 3 gathers one unit at a time; activations stay as they are, ZeRO does not shard
them.

The optimizer is any torch.optim class over the rank's own shards: it never sees the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .collectives import all_gather, all_reduce, reduce_scatter
from .group import Group

MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


class Unit:
    """Parameters that are gathered, reduced and updated together; `shard` is this rank's part.

    As a `master` the shard is a copy in at least 32 bits, beside the parameters that compute.
    Padding is zero, stays zero, and counts in no norm, because its gradient is zero.
    """

    def __init__(self, module: nn.Module, group: Group, name: str, master: bool = True):
        self.module, self.group, self.name = module, group, name
        self.parameters = list(module.parameters())
        self.sizes = [p.numel() for p in self.parameters]
        self.length = -(-sum(self.sizes) // group.size)  # elements of one shard
        mine = self.flatten([p.data for p in self.parameters]).tensor_split(group.size)[group.rank]
        dtype = torch.promote_types(mine.dtype, torch.float32) if master else mine.dtype
        self.shard = nn.Parameter(mine.to(dtype, copy=True))
        group.hold(self.shard, "optimizer" if master else "parameter", f"{name} shard")

    def flatten(self, tensors: list[Tensor]) -> Tensor:
        """The tensors end to end, and zeros up to W shards: [W * length]."""
        flat = tensors[0].new_zeros(self.group.size * self.length)
        for view, tensor in zip(self.views(flat), tensors):
            view.copy_(tensor)
        return flat

    def views(self, flat: Tensor) -> list[Tensor]:
        """The part of each parameter in a flat tensor, in its own shape."""
        parts = flat[:sum(self.sizes)].split(self.sizes)
        return [part.view_as(p) for part, p in zip(parts, self.parameters)]

    def reduce_gradients(self) -> None:
        """After: `shard.grad` is this rank's part of the mean gradient; the full gradients are
        freed.

        Cost per rank: reduce-scatter, (W-1)/W of the unit's bytes.
        """
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        flat = self.group.hold(self.flatten(gradients), "buffer", f"{self.name} gradients")
        del gradients
        for parameter in self.parameters:
            parameter.grad = None
        mine = reduce_scatter(list(flat.tensor_split(self.group.size)), self.group, "mean",
                              name=self.name)
        mine = mine.to(self.shard.dtype)
        self.shard.grad = mine if self.shard.grad is None else self.shard.grad + mine
        self.group.hold(self.shard.grad, "gradient", f"{self.name} gradient shard")

    def gather_parameters(self) -> None:
        """After: the parameters of every rank are those of all shards. Cost: all-gather."""
        mine = self.shard.detach().to(self.parameters[0].dtype)
        flat = torch.cat(all_gather(mine, self.group, name=self.name))
        for parameter, view in zip(self.parameters, self.views(flat)):
            parameter.data.copy_(view)


class Zero1:
    """Stage 1. Use like an optimizer: `loss.backward(); zero.step()`. Gradients are whole until
    then.
    """

    def __init__(self, model: nn.Module, group: Group, make_optimizer: MakeOptimizer):
        self.group = group
        self.units = [Unit(module, group, f"unit {i}")
                      for i, module in enumerate(units_of(model))]
        self.optimizer = make_optimizer([unit.shard for unit in self.units])

    def step(self, max_norm: float | None = None) -> None:
        """After: every rank holds the same updated parameters; gradients are gone."""
        for unit in self.units:
            unit.reduce_gradients()
        self.update(max_norm)

    def update(self, max_norm: float | None = None) -> None:
        """Clip by the global norm, update the own shards, gather everybody's."""
        update_shards(self.units, self.optimizer, self.group, max_norm)
        for unit in self.units:
            unit.gather_parameters()


class Zero2(Zero1):
    """Stage 2: a unit's gradients are reduced and freed as soon as its last one has been
    computed.
    """

    def __init__(self, model: nn.Module, group: Group, make_optimizer: MakeOptimizer):
        super().__init__(model, group, make_optimizer)
        for unit in self.units:
            when_complete(unit, unit.reduce_gradients)

    def step(self, max_norm: float | None = None) -> None:
        """After: as in stage 1; the gradients are in their shards already."""
        self.update(max_norm)


class Zero3:
    """Stage 3: between uses a rank holds its shards and nothing else of the parameters.

    A unit is gathered before its forward and again before its backward, and released after each.
    With `prefetch`, the next unit's all-gather runs on a background stream meanwhile; then two
    units are held at a time instead of one.
    """

    def __init__(self, model: nn.Module, group: Group, make_optimizer: MakeOptimizer,
                 prefetch: bool = False):
        self.group, self.stream = group, group.stream("comm") if prefetch else None
        self.units = [Gathered(module, group, f"unit {i}", self.stream)
                      for i, module in enumerate(units_of(model))]
        self.optimizer = make_optimizer([unit.shard for unit in self.units])
        for i, unit in enumerate(self.units):
            after = self.units[i + 1] if prefetch and i + 1 < len(self.units) else None
            before = self.units[i - 1] if prefetch and i > 0 else None
            unit.watch(after, before)

    def step(self, max_norm: float | None = None) -> None:
        """After: the own shards are updated. Nothing is gathered: the next forward does that."""
        update_shards(self.units, self.optimizer, self.group, max_norm)


class Gathered(Unit):
    """A unit whose full parameters exist only while they are used.

    The parameters are views of one flat storage. Releasing resizes that storage to nothing:
    autograd keeps views of gathered weights, so that dropping references would free no memory. """

    def __init__(self, module: nn.Module, group: Group, name: str, stream=None):
        super().__init__(module, group, name, master=False)
        self.stream, self.job = stream, None
        self.flat = self.flatten([p.data for p in self.parameters])
        group.hold(self.flat, "parameter", f"{name} gathered")
        for parameter, view in zip(self.parameters, self.views(self.flat)):
            parameter.data = view
        self.release()

    def watch(self, after: Gathered | None, before: Gathered | None) -> None:
        """Gather and release around the module's forward and backward; look ahead one unit."""
        def before_forward(*_) -> None:
            self.unshard(then=after)

        def after_forward(module, inputs, output: Tensor) -> None:
            self.release()
            if output.requires_grad:  # its gradient arrives just before the unit's own backward
                output.register_hook(lambda _: self.unshard(then=before))

        self.module.register_forward_pre_hook(before_forward)
        self.module.register_forward_hook(after_forward)
        when_complete(self, self.finish)

    def start(self) -> None:
        """Start to gather on the background stream, unless that has begun or the unit is here."""
        if self.job is None and not self.here:
            shard = self.shard.detach()
            self.job = self.stream.submit(all_gather, shard, self.stream.group, name=self.name)

    def unshard(self, then: Gathered | None = None) -> None:
        """After: the module's parameters are whole. Cost: all-gather of the unit."""
        if self.here:
            return
        parts = self.job.wait() if self.job else all_gather(self.shard.detach(), self.group,
                                                            name=self.name)
        self.job = None
        if then is not None:
            then.start()
        nbytes = self.group.size * self.length * self.flat.element_size()
        self.flat.untyped_storage().resize_(nbytes)
        self.group.resized(self.flat)
        # Through .data: autograd's version counter must not see that the values have come back.
        for chunk, part in zip(self.flat.data.tensor_split(self.group.size), parts):
            chunk.copy_(part)

    def release(self) -> None:
        """After: of the parameters only the shard is held."""
        self.flat.untyped_storage().resize_(0)
        self.group.resized(self.flat)

    def finish(self) -> None:
        """The unit's gradients are complete: reduce them to the shard's, and let the unit go."""
        self.reduce_gradients()
        self.release()

    @property
    def here(self) -> bool:
        return self.flat.untyped_storage().nbytes() > 0


def when_complete(unit: Unit, act: Callable[[], None]) -> None:
    """Call `act` whenever the last gradient of the unit's parameters has been accumulated."""
    missing = set(unit.parameters)

    def arrived(parameter: nn.Parameter) -> None:
        missing.discard(parameter)
        if not missing:
            missing.update(unit.parameters)
            act()

    for parameter in unit.parameters:
        parameter.register_post_accumulate_grad_hook(arrived)


def clip_gradients(shards: list[nn.Parameter], max_norm: float, group: Group) -> float:
    """Scale all gradients so that their *global* norm is at most max_norm; returns the norm before.

    Each rank knows only its shards: the squares are summed over ranks first. Cost: 8 bytes.
    """
    squares = sum((s.grad.double() ** 2).sum() for s in shards if s.grad is not None)
    total = all_reduce(squares.reshape(1), group, name="norm").sqrt().item()
    scale = max_norm / (total + 1e-6)  # as torch.nn.utils.clip_grad_norm_
    if scale < 1:
        for shard in shards:
            shard.grad.mul_(scale)
    return total


def update_shards(units: list[Unit], optimizer: torch.optim.Optimizer, group: Group,
                  max_norm: float | None) -> None:
    """Clip the shards' gradients by the global norm, update the shards, drop the gradients."""
    if max_norm is not None:
        clip_gradients([unit.shard for unit in units], max_norm, group)
    optimizer.step()
    optimizer.zero_grad()
    hold_states(optimizer, group)


def hold_states(optimizer: torch.optim.Optimizer, group: Group) -> None:
    """Tell the recorder what the optimizer keeps: moments and the like."""
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, Tensor):
                group.hold(value, "optimizer")


def units_of(model: nn.Module) -> list[nn.Module]:
    """The model's own `units`, or itself. ValueError if a parameter is in none or in two of
    them.
    """
    units = list(getattr(model, "units", [model]))
    inside = [p for unit in units for p in unit.parameters()]
    if len(inside) != len(set(inside)) or set(inside) != set(model.parameters()):
        raise ValueError("model.units: every parameter must be in exactly one unit (a tied head "
                         "shares its weight with the embedding: put both in one unit)")
    return units
