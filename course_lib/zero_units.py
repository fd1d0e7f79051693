"""What ZeRO shards: a module's parameters laid end to end and cut into one shard per rank.

A `Unit` is whole on every rank between steps (stages 1 and 2); a `Gathered` one only while it is
used (stage 3). The stages, and what they cost, are in zero.py.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .calls import collective
from .collectives import reduce_scatter, ring_all_reduce
from .collectives.many import pass_around
from .data_parallel import follow, trainable
from .group import Group


@collective("shape")
def all_gather_into(flat: Tensor, group: Group) -> None:
    """After: every rank holds all of `flat`, of which rank r held chunk r. Cost: all-gather."""
    pass_around([[chunk] for chunk in flat.tensor_split(group.size)], group)


def own_sum(flat: Tensor, group: Group, name: str) -> Tensor:
    """This rank's chunk of the mean of `flat` over ranks. Cost: reduce-scatter, (W-1)/W n bytes."""
    return reduce_scatter(list(flat.tensor_split(group.size)), group, "mean", name=name)


def own_sum_by_all_reduce(flat: Tensor, group: Group, name: str) -> Tensor:
    """The same chunk, cut out of a mean that every rank receives whole: 2(W-1)/W n bytes."""
    ring_all_reduce(flat, group, op="mean", name=name)
    return flat.tensor_split(group.size)[group.rank].clone()


class Unit:
    """Parameters that are gathered, reduced and updated together, views of one flat tensor: those
    that are not frozen, of one dtype.

    `part` is this rank's chunk of it, and `shard` what the optimizer updates: the part itself, or
    its master in 32 bits. Padding is zero and stays so: its gradient is zero.
    """

    def __init__(self, module: nn.Module, group: Group, name: str):
        self.module, self.group, self.name = module, group, name
        self.parameters = list(trainable(module).values())
        self.versions = [p._version for p in self.parameters]
        self.missing = set(self.parameters)  # those whose gradient this backward has yet to bring
        shapes = [p.shape for p in self.parameters]
        self.sizes = [shape.numel() for shape in shapes]
        self.length = -(-sum(self.sizes) // group.size)  # elements of one shard
        self.gradient: Tensor | None = None
        self.flat = self.flatten([p.data for p in self.parameters])
        group.hold(self.flat, "parameter", name)
        self.chunks = self.flat.tensor_split(group.size)
        parts = self.flat[:sum(self.sizes)].split(self.sizes)
        self.views = [part.view(shape) for part, shape in zip(parts, shapes)]
        self.set_parameters(self.views)
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(self.found)
        self.part = self.keep()
        wide = torch.promote_types(self.part.dtype, torch.float32)
        self.shard = nn.Parameter(self.part.to(wide))
        if wide != self.part.dtype:
            group.hold(self.shard, "optimizer", f"{name} master shard")

    def keep(self) -> Tensor:
        """What this rank keeps of the parameters: its chunk, among all the others."""
        return self.chunks[self.group.rank]

    def set_parameters(self, tensors: list[Tensor]) -> None:
        """After: these are the data of the module's parameters."""
        for parameter, tensor in zip(self.parameters, tensors):
            parameter.data = tensor

    def follow(self) -> None:
        """Take over what was written into the parameters, by load_state_dict or the like."""
        if self.versions != (versions := [p._version for p in self.parameters]):
            self.versions = versions
            self.part.copy_(self.chunks[self.group.rank])
            follow(self.shard, self.part)

    def found(self, parameter: nn.Parameter) -> None:
        """The backward pass has made a gradient: say what it is kept for."""
        self.group.hold(parameter.grad, "gradient", f"{self.name} full gradient")

    def flatten(self, tensors: list[Tensor]) -> Tensor:
        """The tensors end to end, and zeros up to W shards: [W * length]."""
        padding = tensors[0].new_zeros(self.group.size * self.length - sum(self.sizes))
        return torch.cat([*(t.reshape(-1) for t in tensors), padding])

    def reduce_gradients(self, reduce=own_sum) -> None:
        """After: `gradient` has this rank's part of the mean gradient added; the full gradients
        are freed. Cost per rank: that of `reduce` on the unit's bytes.
        """
        flat = self.take_gradients()
        self.add_gradient(reduce(flat, self.group, self.name))

    def take_gradients(self) -> Tensor:
        """The gradients end to end, zero where a parameter got none; the parameters' are freed."""
        flat = self.flatten([self.flat.new_zeros(size) if p.grad is None else p.grad
                             for p, size in zip(self.parameters, self.sizes)])
        for parameter in self.parameters:
            parameter.grad = None
        self.missing = set(self.parameters)
        return self.group.hold(flat, "buffer", f"{self.name} gradients")

    def add_gradient(self, mine: Tensor) -> None:
        """Keep the part of one micro-batch, or add it to those before."""
        if self.gradient is not None:
            mine = self.gradient.to(self.shard.dtype) + mine
        self.gradient = self.group.hold(mine, "gradient", f"{self.name} gradient shard")

    def gather_parameters(self) -> None:
        """After: the parameters of every rank are those of all shards. Cost: all-gather."""
        all_gather_into(self.flat, self.group, name=self.name)


class Gathered(Unit):
    """A unit whose full parameters exist only while they are used.

    Releasing resizes their flat storage to nothing: autograd keeps views of gathered weights, so
    that dropping references would free no memory. With a stream, gathering and reducing run there.
    The parameters then have no elements: nobody can read memory that is gone.
    """

    stream = after = gathering = reducing = leaving = None

    def keep(self) -> Tensor:
        """What this rank keeps of the parameters: a copy of its chunk, and nothing else."""
        part = self.group.hold(super().keep().clone(), "parameter", f"{self.name} shard")
        self.nothing = torch.empty(0, dtype=part.dtype, device=part.device)
        self.release()
        return part

    def watch(self, after: Gathered | None, before: Gathered | None, through) -> None:
        """Gather and release around the module's forward and backward.

        `through()` is called when the backward passes of all units after this one are over.
        """
        self.after = after

        def before_forward(*_) -> None:
            self.unshard(then=after)

        def after_forward(module, inputs, output: Tensor) -> None:
            self.release()
            if output.requires_grad:  # its gradient arrives just before the unit's own backward
                output.register_hook(before_backward)

        def before_backward(_) -> None:
            through()
            self.unshard(then=before)

        self.module.register_forward_pre_hook(before_forward)
        self.module.register_forward_hook(after_forward)

    def guard(self) -> None:
        """State dicts are read and loaded while parameters are here, and copied: they go again."""
        def must_be_here(module: nn.Module, *_) -> None:
            if not self.here and trainable(module):
                raise RuntimeError(f"the parameters of {self.name} are sharded: call state_dict "
                                   "and load_state_dict inside `with zero.whole():`, on all ranks")

        def copy_state(module: nn.Module, state: dict, prefix: str, _) -> None:
            must_be_here(module)
            for name, parameter in module.named_parameters(recurse=False):
                state[prefix + name] = parameter.detach().clone()

        for module in self.module.modules():
            module.register_state_dict_post_hook(copy_state)
            module.register_load_state_dict_pre_hook(must_be_here)

    def start(self) -> None:
        """Start to gather, unless that has begun or the unit is here."""
        if self.here:
            return
        nbytes = self.group.size * self.length * self.flat.element_size()
        self.flat.untyped_storage().resize_(nbytes)
        self.group.resized(self.flat)
        self.set_parameters(self.views)
        self.chunks[self.group.rank].copy_(self.part)
        if self.stream is None:
            self.gather_parameters()
        else:
            self.gathering = self.stream.submit(all_gather_into, self.flat, self.stream.group,
                                                name=self.name)

    def unshard(self, then: Gathered | None = None) -> None:
        """After: the module's parameters are whole; with a stream, `then`'s are on their way.

        Cost: all-gather of the unit.
        """
        self.start()
        self.gathered()
        if then is not None and self.stream is not None:
            then.start()

    def gathered(self) -> None:
        """After: the background has gathered this unit, or was not asked to."""
        if self.gathering is not None:
            self.gathering.wait()
            self.gathering = None

    def release(self) -> None:
        """After: of the parameters only the shard is held."""
        self.gathered()  # of a unit that was then not used: the memory must outlive the messages
        self.set_parameters([self.nothing] * len(self.parameters))
        self.flat.untyped_storage().resize_(0)
        self.group.resized(self.flat)

    def follow(self) -> None:
        """As for any unit, while its parameters are whole."""
        if self.here:
            super().follow()

    def reduce_gradients(self, reduce=own_sum) -> None:
        """As for any unit; the parameters go too. At most one unit's gradients are on their way."""
        self.release()
        if self.stream is None:
            return super().reduce_gradients(reduce)
        for unit in (self, self.after):
            if unit is not None:
                unit.reduced()
        self.leaving = self.take_gradients()  # kept here: freed when the main program knows of it
        self.reducing = self.stream.submit(reduce, self.leaving, self.stream.group, self.name)

    def reduced(self) -> None:
        """After: the background has reduced this unit's gradients."""
        if self.reducing is not None:
            self.add_gradient(self.reducing.wait())
            self.reducing = self.leaving = None

    @property
    def here(self) -> bool:
        return self.flat.untyped_storage().nbytes() > 0
