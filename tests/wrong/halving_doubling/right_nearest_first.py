# verdict: passed
# points: 6
import torch


def halving_doubling(x, group):
    mine, steps, distance = x.view(-1), [], 1
    while distance < group.size:
        partner, half = group.rank ^ distance, (mine.numel() + 1) // 2
        keep, give = mine[:half], mine[half:]
        if group.rank & distance:
            keep, give = give, keep
        arrived = torch.empty_like(keep)
        receiving, sending = group.irecv(arrived, partner), group.isend(give, partner)
        receiving.wait()
        sending.wait()
        keep.add_(arrived)
        steps.append((partner, keep, give))
        mine, distance = keep, 2 * distance
    for partner, keep, give in steps[::-1]:
        group.exchange(keep, partner, give, partner)
    return x
