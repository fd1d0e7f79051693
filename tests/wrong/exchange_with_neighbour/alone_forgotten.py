# verdict: error-alone
# points: 3
# hint: group.size is 1
import torch


def exchange_with_neighbour(x, group):
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    received = torch.empty_like(x)
    sending = group.isend(x, right)
    group.recv(received, left)
    sending.wait()
    return received
