# verdict: only-two-ranks
# points: 0
# hint: rank ^ distance
import torch


def halving_doubling(x, group):
    flat, low, high, steps = x.view(-1), 0, x.numel(), []
    distance = group.size // 2
    while distance:
        partner, middle = 1 - group.rank, low + (high - low) // 2
        if group.rank & distance:
            keep, give, low = flat[middle:high], flat[low:middle], middle
        else:
            keep, give, high = flat[low:middle], flat[middle:high], middle
        keep += group.exchange(give, partner, torch.empty_like(keep), partner)
        steps.append((partner, keep, give))
        distance //= 2
    for partner, keep, give in reversed(steps):
        group.exchange(keep, partner, give, partner)
    return x
