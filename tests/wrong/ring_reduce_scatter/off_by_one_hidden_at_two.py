# verdict: wrong-part
# points: 0
# hint: With two ranks
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[(r + 1) % W].clone()
    for step in range(W - 1):
        own = parts[(r - step) % W]
        partial = group.exchange(partial, (r + 1) % W, torch.empty_like(own), (r - 1) % W) + own
    return partial
