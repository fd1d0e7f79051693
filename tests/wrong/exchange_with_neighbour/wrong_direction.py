# verdict: wrong-direction
# points: 2
# hint: left and right
import torch


def exchange_with_neighbour(x, group):
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, left, torch.empty_like(x), right)
