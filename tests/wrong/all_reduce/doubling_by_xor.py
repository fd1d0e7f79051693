# verdict: only-powers-of-two
# points: 0
# hint: powers of two only
# runs in: soak
import torch


def all_reduce(x, group):
    distance = 1
    while distance < group.size:
        partner = group.rank ^ distance
        x += group.exchange(x.clone(), partner, torch.empty_like(x), partner)
        distance *= 2
    return x
