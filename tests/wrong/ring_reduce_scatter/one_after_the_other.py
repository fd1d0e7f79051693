# verdict: too-many-steps
# points: 4
# hint: at the same time
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[(r - 1) % W].clone()
    for step in range(W - 1):
        own = parts[(r - step - 2) % W]
        arrived = torch.empty_like(own)
        if r % 2:
            group.recv(arrived, (r - 1) % W)
            group.send(partial, (r + 1) % W)
        else:
            if r == W - 1:  # two even ranks meet where W is odd
                group.recv(arrived, (r - 1) % W)
                group.send(partial, (r + 1) % W)
            else:
                group.send(partial, (r + 1) % W)
                group.recv(arrived, (r - 1) % W)
        partial = arrived + own
    return partial
