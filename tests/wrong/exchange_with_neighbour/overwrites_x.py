# verdict: changed-x
# points: 3
# hint: must stay
import torch


def exchange_with_neighbour(x, group):
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    received = group.exchange(x, right, torch.empty_like(x), left)
    return x.copy_(received)
