# verdict: refused
# runs in: soak
import os
import signal

import torch


def exchange_with_neighbour(x, group):
    os.kill(os.getpid(), signal.SIGKILL)
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)
