# verdict: held-after-w
# points: 6
# hint: makes a graph of its own
import torch


def deferred_linear(x, weight, queue):
    class Deferred(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight_data):
            ctx.save_for_backward(x)
            return x @ weight_data.T

        @staticmethod
        def backward(ctx, dy):
            x = ctx.saved_tensors[0]

            def add_gradient():
                gradient = dy.flatten(0, -2).T @ x.flatten(0, -2)
                weight.grad = gradient if weight.grad is None else weight.grad + gradient

            queue.append(add_gradient)
            return dy @ weight, None

    return Deferred.apply(x, weight)
