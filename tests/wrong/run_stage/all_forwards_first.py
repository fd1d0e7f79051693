# verdict: gpipe-again
# points: 5
# hint: whatever the list says
import torch


def run_stage(ops, module, xs, loss_of, group):
    r, last = group.rank, group.rank == group.size - 1
    kept, sends = {}, []
    for _, kind, mb in sorted(ops, key=lambda op: op.kind == "B"):
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
    for handle in sends:
        handle.wait()
