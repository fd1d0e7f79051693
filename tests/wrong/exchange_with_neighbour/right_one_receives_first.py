# verdict: passed
# points: 4
# runs in: soak
import torch


def exchange_with_neighbour(x, group):
    if group.size == 1:
        return x
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    received = torch.empty_like(x)
    if group.rank == 0:
        group.recv(received, left)
        group.send(x, right)
    else:
        group.send(x, right)
        group.recv(received, left)
    return received
