# verdict: added-twice
# points: 0
# hint: second phase
import torch


def all_reduce(x, group):
    r, W = group.rank, group.size
    chunks = x.view(-1).tensor_split(W)
    for phase in range(2):
        for step in range(W - 1):
            out, into = chunks[(r + phase - step) % W], chunks[(r + phase - step - 1) % W]
            into += group.exchange(out, (r + 1) % W, torch.empty_like(into), (r - 1) % W)
    return x
