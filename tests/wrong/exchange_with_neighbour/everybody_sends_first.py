# verdict: deadlock
# points: 0
# hint: isend
import torch


def exchange_with_neighbour(x, group):
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    received = torch.empty_like(x)
    group.send(x, right)
    group.recv(received, left)
    return received
