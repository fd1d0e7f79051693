# verdict: only-two-ranks
# points: 0
# hint: neighbours
# runs in: soak
import torch


def all_reduce(x, group):
    if group.size > 1:
        other = 1 - group.rank
        x += group.exchange(x.clone(), other, torch.empty_like(x), other)
    return x
