# verdict: no-modulo
# points: 0
# hint: modulo group.size
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[r - 1].clone()
    for step in range(W - 1):
        own = parts[r + W - step - 2]
        partial = group.exchange(partial, (r + 1) % W, torch.empty_like(own), (r - 1) % W) + own
    return partial
