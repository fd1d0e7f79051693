"""A backward in halves: the weight gradients of linear layers come later than the input gradients.

Qi and others (2023), "Zero Bubble Pipeline Parallelism": the stage before waits for I, the gradient
of a stage's input; W, the gradients of its weights, can fill a bubble.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .group import Group


class DeferWeights(TorchFunctionMode):
    """While it is on, linear layers leave their weight gradients out of the backward pass.

    After the backward it holds the input and the output gradient of each, until `add_gradients`.
    """

    def __init__(self, group: Group):
        super().__init__()
        self.group, self.owed = group, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is nn.functional.linear and not kwargs and args[1].is_leaf:
            return _Linear.apply(self, *args)
        return func(*args, **(kwargs or {}))

    def owe(self, weight: Tensor, bias: Tensor | None, x: Tensor, gy: Tensor) -> None:
        self.owed.append((weight, bias, x.detach(), self.group.hold(gy, "activation")))

    @torch.no_grad()
    def add_gradients(self) -> None:
        """Add what is owed to the weights' `.grad`, and let go of it."""
        while self.owed:
            weight, bias, x, gy = self.owed.pop()
            x, gy = x.flatten(0, -2), gy.flatten(0, -2)
            if weight.requires_grad:
                add_gradient(weight, gy.T @ x)
            if bias is not None and bias.requires_grad:
                add_gradient(bias, gy.sum(0))


class _Linear(torch.autograd.Function):
    """A linear layer whose backward is the input gradient only."""

    @staticmethod
    def forward(ctx, defer: DeferWeights, x: Tensor, weight: Tensor, bias: Tensor | None = None):
        ctx.save_for_backward(x)
        ctx.defer, ctx.weight, ctx.bias = defer, weight, bias
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, gy: Tensor):
        ctx.defer.owe(ctx.weight, ctx.bias, *ctx.saved_tensors, gy)
        return None, gy @ ctx.weight if ctx.needs_input_grad[1] else None, None, None


def add_gradient(parameter: nn.Parameter, gradient: Tensor) -> None:
    """Add to `.grad`, in place where there is one."""
    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
