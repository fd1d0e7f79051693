# verdict: wrong-weight-gradient
# points: 3
# hint: its own micro-batch
import torch

LAST = {}


def deferred_linear(x, weight, queue):
    class Deferred(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight_data):
            ctx.save_for_backward(x)
            return x @ weight_data.T

        @staticmethod
        def backward(ctx, dy):
            LAST["x"], LAST["dy"] = ctx.saved_tensors[0].detach(), dy

            def add_gradient():
                rows = LAST["dy"].flatten(0, -2)
                gradient = rows.T @ LAST["x"].flatten(0, -2)
                weight.grad = gradient if weight.grad is None else weight.grad + gradient

            queue.append(add_gradient)
            return dy @ weight, None

    return Deferred.apply(x, weight)
