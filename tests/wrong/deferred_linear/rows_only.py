# verdict: error
# points: 6
import torch


def deferred_linear(x, weight, queue):
    class Deferred(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight_data):
            ctx.save_for_backward(x)
            return x @ weight_data.T

        @staticmethod
        def backward(ctx, dy):
            x = ctx.saved_tensors[0].detach()

            def add_gradient():
                gradient = dy.T @ x
                weight.grad = gradient if weight.grad is None else weight.grad + gradient

            queue.append(add_gradient)
            return dy @ weight, None

    return Deferred.apply(x, weight)
