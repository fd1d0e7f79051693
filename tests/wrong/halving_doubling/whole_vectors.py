# verdict: whole-vectors
# points: 4
# hint: recursive doubling
import torch


def halving_doubling(x, group):
    distance = 1
    while distance < group.size:
        partner = group.rank ^ distance
        x += group.exchange(x, partner, torch.empty_like(x), partner)
        distance *= 2
    return x
