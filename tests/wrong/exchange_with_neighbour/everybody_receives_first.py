# verdict: deadlock
# points: 0
# hint: isend
# runs in: soak
import torch


def exchange_with_neighbour(x, group):
    if group.size == 1:
        return x.clone()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    received = torch.empty_like(x)
    group.recv(received, left)
    group.send(x, right)
    return received
