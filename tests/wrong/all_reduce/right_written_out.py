# verdict: passed
# points: 6
import torch


def all_reduce(x, group):
    r, W = group.rank, group.size
    chunks = x.view(-1).tensor_split(W)
    for step in range(W - 1):
        out, into = chunks[(r - step) % W], chunks[(r - step - 1) % W]
        into += group.exchange(out, (r + 1) % W, torch.empty_like(into), (r - 1) % W)
    for step in range(W - 1):
        out, into = chunks[(r + 1 - step) % W], chunks[(r - step) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return x
