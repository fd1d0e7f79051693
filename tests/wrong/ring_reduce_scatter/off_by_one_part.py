# verdict: wrong-part
# points: 0
# hint: wrong ranks
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[r].clone()
    for step in range(W - 1):
        own = parts[(r - step - 1) % W]
        partial = group.exchange(partial, (r + 1) % W, torch.empty_like(own), (r - 1) % W) + own
    return partial
