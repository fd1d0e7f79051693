# verdict: passed
# points: 4
# runs in: soak
import torch


def exchange_with_neighbour(x, group):
    if group.size == 1:
        return x.clone()
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    received = torch.empty_like(x)
    receiving = group.irecv(received, left)
    group.send(x, right)
    receiving.wait()
    return received
