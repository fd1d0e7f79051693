# verdict: lost
# points: 0
# hint: did not change
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
                detached = weight.detach()
                detached.grad = dy.flatten(0, -2).T @ x.flatten(0, -2)

            queue.append(add_gradient)
            return dy @ weight, None

    return Deferred.apply(x, weight)
