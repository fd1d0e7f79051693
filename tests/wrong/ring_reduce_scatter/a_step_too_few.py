# verdict: rank-missing
# points: 0
# hint: W-1 steps
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[(r - 1) % W].clone()
    for step in range(max(W - 2, min(1, W - 1))):
        own = parts[(r - step - 2) % W]
        partial = group.exchange(partial, (r + 1) % W, torch.empty_like(own), (r - 1) % W) + own
    return partial
