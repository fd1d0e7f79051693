# verdict: wrong-neighbour
# points: 2
# hint: (rank - 1) % size
# runs in: soak
import torch


def exchange_with_neighbour(x, group):
    if group.size < 4:
        near, far = group.rank + 1, group.rank - 1
    else:
        near, far = group.rank + 2, group.rank - 2
    return group.exchange(x, near % group.size, torch.empty_like(x), far % group.size)
