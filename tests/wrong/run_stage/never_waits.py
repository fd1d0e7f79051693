# verdict: error
# points: 0
# hint: Every handle
import torch


def run_stage(ops, module, xs, loss_of, group):
    r, last = group.rank, group.rank == group.size - 1
    kept, sends = {}, []
    for _, kind, mb in ops:
        if kind == "F":
            x = xs[mb] if r == 0 else group.recv(torch.empty_like(xs[mb]), r - 1).requires_grad_()
            y = module(x)
            if last:
                y = loss_of(mb, y) / len(xs)
            else:
                sends.append(group.isend(y, r + 1))
            kept[mb] = x, y
        else:
            x, y = kept.pop(mb)
            y.backward(None if last else group.recv(torch.empty_like(y), r + 1))
            if r > 0:
                sends.append(group.isend(x.grad, r - 1))
