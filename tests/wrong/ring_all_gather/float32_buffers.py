# verdict: wrong-dtype
# points: 5
# hint: about the dtype
# runs in: soak
import torch


def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [torch.zeros(n) for n in sizes]
    gathered[r] = x.clone()
    for step in range(W - 1):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return gathered
