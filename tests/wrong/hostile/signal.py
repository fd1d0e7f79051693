# verdict: died
# runs in: soak
import signal

import torch


def exchange_with_neighbour(x, group):
    signal.raise_signal(signal.SIGSEGV)
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)
