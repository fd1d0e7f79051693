# verdict: passed
# points: 8
import torch


def run_stage(ops, module, xs, loss_of, group):
    """The last rank starts the backward from 1/m, and gradients are taken by autograd.grad."""
    r, last = group.rank, group.rank == group.size - 1
    kept, sends, parameters = {}, [], list(module.parameters())
    for _, kind, mb in ops:
        if kind == "F":
            x = xs[mb]
            if r > 0:
                x = torch.empty_like(x)
                group.recv(x, r - 1)
            x.requires_grad_()
            y = module(x)
            if last:
                y = loss_of(mb, y)
            else:
                sends.append(group.isend(y, r + 1))
            kept[mb] = x, y
            del x, y
        else:
            x, y = kept.pop(mb)
            start = torch.full_like(y, 1 / len(xs))
            if not last:
                group.recv(start, r + 1)
            dx, *grads = torch.autograd.grad(y, [x, *parameters], start)
            for p, grad in zip(parameters, grads):
                p.grad = grad if p.grad is None else p.grad + grad
            if r > 0:
                sends.append(group.isend(dx, r - 1))
    for handle in sends:
        handle.wait()
