# verdict: passed
# runs in: soak
import threading
import time

import torch


def exchange_with_neighbour(x, group):
    threading.Thread(target=time.sleep, args=(999,)).start()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)
