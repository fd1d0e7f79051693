# verdict: not-a-ring
# points: 4
# hint: two neighbours
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    total = parts[r].clone()
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        total += group.exchange(parts[to], to, torch.empty_like(parts[r]), frm)
    return total
