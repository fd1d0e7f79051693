# verdict: deadlock
# points: 0
# hint: sends first
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[(r - 1) % W].clone()
    for step in range(W - 1):
        own = parts[(r - step - 2) % W]
        arrived = torch.empty_like(own)
        group.send(partial, (r + 1) % W)
        group.recv(arrived, (r - 1) % W)
        partial = arrived + own
    return partial
