# verdict: passed
# points: 6
import torch


def repaired_step(module, xs, loss_of, group):
    """A send and the receive from the same neighbour happen together, as in Megatron-LM."""
    r, m, last = group.rank, len(xs), group.rank == group.size - 1
    warmup, kept = min(group.size - 1 - r, m), []
    x = xs[0] if r == 0 else group.recv(torch.empty_like(xs[0]), r - 1)
    for mb in range(m + warmup):
        dy = None
        if mb < m:
            x.requires_grad_()
            y = module(x)
            kept.append((x, loss_of(mb, y) / m if last else y))
            if not last and mb < warmup:
                group.send(y, r + 1)
            elif not last:
                dy = group.exchange(y, r + 1, torch.empty_like(y), r + 1)
        elif not last:
            dy = group.recv(torch.empty_like(xs[0]), r + 1)
        more = mb + 1 < m
        if mb < warmup:
            x = _next(xs, mb + 1, r, group) if more else None
            continue
        old, y = kept.pop(0)
        torch.autograd.backward([y], [dy])
        x = xs[mb + 1] if more else None
        if r > 0 and more:
            x = group.exchange(old.grad, r - 1, torch.empty_like(xs[0]), r - 1)
        elif r > 0:
            group.send(old.grad, r - 1)


def _next(xs, mb, r, group):
    return xs[mb] if r == 0 else group.recv(torch.empty_like(xs[mb]), r - 1)
