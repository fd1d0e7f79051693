# verdict: added-not-copied
# points: 0
# hint: nothing is added
# runs in: soak
import torch


def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone() for n in sizes]
    for step in range(W - 1):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        into += group.exchange(out, (r + 1) % W, torch.empty_like(into), (r - 1) % W)
    return gathered
