# verdict: gathers-everything
# points: 4
# hint: Sum one chunk per rank
import torch


def all_reduce(x, group):
    r, W = group.rank, group.size
    travelling = x.clone()
    for _ in range(W - 1):
        into = torch.empty_like(x)
        travelling = group.exchange(travelling, (r + 1) % W, into, (r - 1) % W)
        x += travelling
    return x
