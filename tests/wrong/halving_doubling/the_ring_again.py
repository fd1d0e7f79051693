# verdict: as-the-ring
# points: 4
# hint: 2(W-1) steps
import torch


def halving_doubling(x, group):
    r, W = group.rank, group.size
    chunks = x.view(-1).tensor_split(W)
    for step in range(W - 1):
        into = chunks[(r - step - 2) % W]
        out = chunks[(r - step - 1) % W]
        into += group.exchange(out, (r + 1) % W, torch.empty_like(into), (r - 1) % W)
    for step in range(W - 1):
        out, into = chunks[(r - step) % W], chunks[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return x
