# verdict: changed-parts
# points: 5
# hint: belongs to the caller
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    for step in range(W - 1):
        send, recv = (r - step - 1) % W, (r - step - 2) % W
        arrived = torch.empty_like(parts[recv])
        parts[recv] += group.exchange(parts[send], (r + 1) % W, arrived, (r - 1) % W)
    return parts[r].clone()
