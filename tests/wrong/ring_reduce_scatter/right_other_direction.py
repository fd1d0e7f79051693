# verdict: passed
# points: 6
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[(r + 1) % W].clone()
    for step in range(W - 1):
        own = parts[(r + step + 2) % W]
        partial = group.exchange(partial, (r - 1) % W, torch.empty_like(own), (r + 1) % W)
        partial += own
    return partial
