# verdict: gathers-everything
# points: 4
# hint: keeps a slice
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    total, travelling = [part.clone() for part in parts], list(parts)
    for _ in range(W - 1):
        travelling = [
            group.exchange(part, (r + 1) % W, torch.empty_like(part), (r - 1) % W)
            for part in travelling
        ]
        total = [a + b for a, b in zip(total, travelling)]
    return total[r]
