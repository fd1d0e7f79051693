# verdict: died
# runs in: soak
import ctypes

import torch


def exchange_with_neighbour(x, group):
    ctypes.string_at(0)
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)
