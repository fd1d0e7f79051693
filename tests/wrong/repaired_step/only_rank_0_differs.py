# verdict: deadlock
# points: 1
# hint: two neighbours still wait
import torch


def repaired_step(module, xs, loss_of, group):
    r, m, last = group.rank, len(xs), group.rank == group.size - 1
    warmup, kept, sends = min(group.size - 1 - r, m), [], []
    for mb in range(m + warmup):
        if mb < m:
            x = xs[mb] if r == 0 else group.recv(torch.empty_like(xs[mb]), r - 1).requires_grad_()
            y = module(x)
            if last:
                y = loss_of(mb, y) / m
            else:
                sends.append(group.isend(y, r + 1))
                if r > 0:
                    sends.pop().wait()
            kept.append((x, y))
        if mb >= warmup:
            x, y = kept.pop(0)
            y.backward(None if last else group.recv(torch.empty_like(y), r + 1))
            if r > 0:
                group.send(x.grad, r - 1)
    for handle in sends:
        handle.wait()
