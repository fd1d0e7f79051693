# verdict: only-two-ranks
# points: 0
# hint: 1 - rank
import torch


def ring_reduce_scatter(parts, group):
    if group.size == 1:
        return parts[0].clone()
    other = 1 - group.rank
    into = torch.empty_like(parts[group.rank])
    return parts[group.rank] + group.exchange(parts[other], other, into, other)
