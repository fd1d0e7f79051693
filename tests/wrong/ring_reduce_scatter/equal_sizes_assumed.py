# verdict: call-mismatch
# points: 3
# hint: same part
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[(r - 1) % W].clone()
    for step in range(W - 1):
        arrived = torch.empty_like(partial)
        group.exchange(partial, (r + 1) % W, arrived, (r - 1) % W)
        partial = arrived + parts[(r - step - 2) % W]
    return partial
