"""Data parallelism: every rank has the whole model and a part of the batch.

The step is the textbook step with one line more:

    loss = loss_fn(model, batch); loss.backward()
    average_gradients(model, group)            # <- the communication
    optimizer.step(); optimizer.zero_grad()

Three ways to do that line, same result: one all-reduce per parameter; one of all gradients laid end
to end; or `Overlap`, buckets that are reduced on a background stream while the backward pass still
runs. Parameters that got no gradient count as zero on that rank; frozen ones (requires_grad=False)
stay out of everything, `broadcast_parameters` apart: nothing of them travels or changes. `Overlap`
and `MasterWeights` look once, when they are made, which are frozen.

Memory per rank: all of it, 16 bytes per parameter with Adam in mixed precision (`MasterWeights`).
Traffic per step and rank: 2(W-1)/W of the gradients' bytes (Li et al. 2020, "PyTorch Distributed",
arXiv 2006.15704).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from .collectives import all_reduce, broadcast
from .group import Group


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that are not frozen, by name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def broadcast_parameters(model: nn.Module, group: Group, root: int = 0) -> None:
    """After: parameters and buffers of every rank equal the root's. Cost: broadcast of each."""
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        in_place(broadcast, tensor.detach(), group, root, name=name)
        torch.autograd.graph.increment_version(tensor)  # masters learn of it: see `follow`


def average_gradients(model: nn.Module, group: Group, weight: float | None = None) -> None:
    """After: every parameter's gradient is the mean over ranks. One all-reduce per parameter.

    With `weight`, the mean weighted by it: pass the number of tokens of this rank's part when the
    loss is a mean over tokens and the parts differ in size (a mean of means is wrong).

    Cost per rank: for P parameters of n bytes in all, 2(W-1)P steps, 2(W-1)/W n bytes.
    """
    share = _share(weight, group)
    for name, parameter in trainable(model).items():
        gradient = group.hold(_gradient(parameter), "gradient", name)
        gradient.mul_(share)
        in_place(all_reduce, gradient, group, name=name)


def average_gradients_flat(model: nn.Module, group: Group, weight: float | None = None) -> None:
    """After: as average_gradients. All gradients laid end to end travel in one all-reduce.

    Cost per rank: 2(W-1) steps, 2(W-1)/W n bytes, and a buffer of n bytes.
    """
    gradients = [group.hold(_gradient(p), "gradient", name) for name, p in trainable(model).items()]
    if not gradients:
        return
    flat = group.hold(torch.cat([g.flatten() for g in gradients]), "buffer", "flat gradients")
    all_reduce(flat.mul_(_share(weight, group)), group)
    for gradient, reduced in zip(gradients, flat.split([g.numel() for g in gradients])):
        gradient.copy_(reduced.view_as(gradient))


def in_place(collective: Callable, tensor: Tensor, *args, **kwargs) -> None:
    """Call it on a tensor of any strides, such as channels_last, by way of a contiguous copy."""
    rows = tensor.contiguous()  # the tensor itself, if it is
    collective(rows, *args, **kwargs)
    if rows is not tensor:
        tensor.copy_(rows)


class Bucket:
    """Gradients that travel together. They are views of one flat buffer: nothing is copied."""

    def __init__(self, parameters: list[nn.Parameter], group: Group, number: int):
        self.parameters, self.name = parameters, f"bucket {number}"
        size = sum(p.numel() for p in parameters)
        self.flat = torch.zeros(size, dtype=parameters[0].dtype, device=parameters[0].device)
        group.hold(self.flat, "gradient", self.name)
        self.missing, self.job = set(parameters), None
        parts = self.flat.split([p.numel() for p in parameters])
        self.views = {p: part.view_as(p) for p, part in zip(parameters, parts)}
        for parameter, view in self.views.items():
            parameter.grad = view

    def attach(self, parameter: nn.Parameter) -> None:
        """Make its gradient a view again, with the same numbers: zero_grad() sets it to None."""
        gradient, view = parameter.grad, self.views[parameter]
        if gradient is not view:
            parameter.grad = view.zero_() if gradient is None else view.copy_(gradient.detach())


class Overlap:
    """Reduces gradients in buckets on a background stream while the backward pass runs.

    Parameters fill buckets in the reverse of the order in which the model lists them: about the
    order in which their gradients come. A bucket starts when its last gradient is there *and* the
    bucket before it has started, so that the order is the same on all ranks whatever the order of
    the hooks. `finish()`, after the backward pass, waits for all; a second pass before it, outside
    of `no_sync()`, is a RuntimeError.

    `zero()` sets gradients to zero in place. After `optimizer.zero_grad()`, which sets them to
    None, new ones are copied into the buckets.
    """

    def __init__(self, model: nn.Module, group: Group, bucket_bytes: int = 25 << 20):
        if not isinstance(bucket_bytes, (int, float)) or not bucket_bytes >= 1:
            raise ValueError(f"bucket_bytes={bucket_bytes!r}: must be a number of at least 1")
        self.group, self.stream = group, group.stream("comm")
        self.buckets: list[Bucket] = []
        self.of: dict[nn.Parameter, Bucket] = {}
        self.next, self.share, self.synced = 0, 1.0 / group.size, True
        for parameters in _filled(reversed(trainable(model).values()), bucket_bytes):
            bucket = Bucket(parameters, group, len(self.buckets))
            self.buckets.append(bucket)
            for parameter in parameters:
                if any(isinstance(getattr(hook, "__self__", None), Overlap)
                       for hook in (parameter._post_accumulate_grad_hooks or {}).values()):
                    raise ValueError("model: has an Overlap already, and must have only one; make "
                                     "it once, before the first step")
                self.of[parameter] = bucket
                parameter.register_post_accumulate_grad_hook(self._arrived)

    def finish(self) -> None:
        """After: every gradient is the mean over ranks. Buckets that got no gradient start here."""
        while self.next < len(self.buckets):
            self._start(self.buckets[self.next])
        for bucket in self.buckets:
            bucket.job.wait()
            bucket.missing, bucket.job = set(bucket.parameters), None
        self.next = 0

    def zero(self) -> None:
        """Set all gradients to zero, in place."""
        for bucket in self.buckets:
            bucket.flat.zero_()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside: backward passes add to the gradients and reduce nothing (accumulation).

        The forward and backward of all micro-batches but the last belong inside; the last outside.
        """
        self.synced = False
        try:
            yield
        finally:
            self.synced = True

    def _arrived(self, parameter: nn.Parameter) -> None:
        bucket = self.of[parameter]
        bucket.attach(parameter)
        if not self.synced:
            return
        if parameter not in bucket.missing:
            raise RuntimeError("a second backward pass before finish(): all micro-batches but the "
                               "last belong inside no_sync(), or finish() after each")
        bucket.missing.remove(parameter)
        while self.next < len(self.buckets) and not self.buckets[self.next].missing:
            self._start(self.buckets[self.next])

    def _start(self, bucket: Bucket) -> None:
        for parameter in bucket.missing:
            bucket.attach(parameter)
        bucket.flat.mul_(self.share)
        bucket.job = self.stream.submit(all_reduce, bucket.flat, self.stream.group,
                                        name=bucket.name)
        self.next += 1


class MasterWeights:
    """Mixed precision: a model in 16 bits computes, the optimizer updates copies in 32.

    An update smaller than about 1/256 of a bfloat16 weight is rounded away; the masters add it up.
    Use like an optimizer, after the gradients are averaged (Micikevicius et al. 2018, "Mixed
    Precision Training", arXiv 1710.03740). What is written into the parameters between two steps,
    as by `model.load_state_dict`, goes into the masters too.

    Memory with Adam: 16 bytes per parameter; 2 each for weight and gradient, 4 each for master and
    two moments. In `step`, 4 more for the gradients in 32 bits.
    """

    def __init__(self, model: nn.Module, group: Group,
                 make_optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer]):
        self.group, self.masters, self.names, self.versions = group, {}, {}, {}
        for name, parameter in trainable(model).items():
            master = nn.Parameter(parameter.detach().float())
            self.masters[parameter] = group.hold(master, "optimizer", f"{name} master")
            self.names[master], self.versions[parameter] = name, parameter._version
        self.optimizer = make_optimizer(list(self.masters.values()))

    def step(self, max_norm: float | None = None) -> None:
        """After: masters are updated, parameters are the masters rounded, gradients are zero."""
        check_max_norm(max_norm)
        for parameter, master in self.masters.items():
            if parameter._version != self.versions[parameter]:
                follow(master, parameter)
                self.versions[parameter] = parameter._version
            master.grad = _gradient(parameter).float()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.masters.values(), max_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        hold_states(self.optimizer, self.names, self.group)
        for parameter, master in self.masters.items():
            parameter.data.copy_(master.detach())
            parameter.grad.zero_()  # in place: it may be a view of a bucket


def follow(master: Tensor, parameter: Tensor) -> None:
    """Take over what was written into a parameter. What still rounds to it keeps its 32 bits.

    That something was written, other than through `.data`, is told by the parameter's `_version`.
    """
    kept = master.detach().to(parameter.dtype) == parameter.detach()
    master.data.copy_(torch.where(kept, master.detach(), parameter.detach().to(master.dtype)))


def check_max_norm(max_norm: float | None) -> None:
    """ValueError unless it is None, for no clipping, or above 0."""
    if max_norm is not None and not max_norm > 0:
        raise ValueError(f"max_norm={max_norm}: must be above 0, or None for no clipping")


def hold_states(optimizer: torch.optim.Optimizer, names: dict[nn.Parameter, str],
                group: Group) -> None:
    """Tell the recorder what the optimizer keeps: moments and the like, not its step counters."""
    for parameter, name in names.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, Tensor) and value.dim():
                group.hold(value, "optimizer", f"{name} {key}")


def _filled(parameters, bucket_bytes: int) -> Iterator[list[nn.Parameter]]:
    """Parameters in order, cut into lists of at most `bucket_bytes` (at least one each) and one
    dtype.
    """
    filling: list[nn.Parameter] = []
    size = 0
    for parameter in parameters:
        nbytes = parameter.numel() * parameter.element_size()
        if filling and (size + nbytes > bucket_bytes or parameter.dtype != filling[0].dtype):
            yield filling
            filling, size = [], 0
        filling.append(parameter)
        size += nbytes
    if filling:
        yield filling


def _gradient(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _share(weight: float | None, group: Group) -> float | Tensor:
    """By what a rank's gradient is multiplied, so that the sum over ranks is the (weighted)
    mean. A tensor where it depends on other ranks: a dry run then needs no value.
    """
    if weight is None:
        return 1.0 / group.size
    if not 0 <= weight < float("inf"):
        raise ValueError(f"weight={weight}: must be finite and at least 0")
    total = torch.tensor(float(weight), dtype=torch.float64, device=group.device)
    all_reduce(total, group, name="weight")
    if not total.is_meta and total == 0:
        raise ValueError(f"weight={weight} on every rank: must be above 0 on at least one")
    return weight / total
