# verdict: passed
# points: 4
import torch


def exchange_with_neighbour(x, group):
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)
