# verdict: passed
# points: 7
import torch


def deferred_linear(x, weight, queue):
    """Autograd sees a weight without gradient; a hook of the output queues the other half."""
    if not x.requires_grad:
        x = x.detach().requires_grad_()
    y = x @ weight.detach().T
    held = x.detach()

    def put_off(dy):
        def add_gradient():
            gradient = torch.einsum("...k,...d->kd", dy, held)
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            weight.grad += gradient

        queue.append(add_gradient)

    y.register_hook(put_off)
    return y
