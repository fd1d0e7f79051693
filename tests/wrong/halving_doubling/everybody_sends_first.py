# verdict: deadlock
# points: 0
# hint: use exchange
import torch


def halving_doubling(x, group):
    flat, low, high, steps = x.view(-1), 0, x.numel(), []
    distance = group.size // 2
    while distance:
        partner, middle = group.rank ^ distance, low + (high - low) // 2
        if group.rank & distance:
            keep, give, low = flat[middle:high], flat[low:middle], middle
        else:
            keep, give, high = flat[low:middle], flat[middle:high], middle
        arrived = torch.empty_like(keep)
        group.send(give, partner)
        group.recv(arrived, partner)
        keep += arrived
        steps.append((partner, keep, give))
        distance //= 2
    for partner, keep, give in reversed(steps):
        group.exchange(keep, partner, give, partner)
    return x
