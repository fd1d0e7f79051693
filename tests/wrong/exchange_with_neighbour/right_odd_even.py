# verdict: passed
# points: 4
import torch


def exchange_with_neighbour(x, group):
    if group.size == 1:
        return x.clone()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    received = torch.empty_like(x)
    if group.rank % 2:
        group.recv(received, left)
        group.send(x, right)
    else:
        group.send(x, right)
        group.recv(received, left)
    return received
