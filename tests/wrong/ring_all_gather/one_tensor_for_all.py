# verdict: one-tensor-for-all
# points: 0
# hint: one and the same tensor
# runs in: soak
import torch


def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [torch.empty_like(x)] * W
    gathered[r].copy_(x)
    for step in range(W - 1):
        out, into = gathered[(r - step) % W].clone(), gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return gathered
