# verdict: passed
# points: 6
import torch


def work(mine, group, distance):
    if distance == 0:
        return
    partner, middle = group.rank ^ distance, mine.numel() // 2
    halves = mine[:middle], mine[middle:]
    upper = bool(group.rank & distance)
    keep, give = halves[upper], halves[not upper]
    keep += group.exchange(give, partner, torch.empty_like(keep), partner)
    work(keep, group, distance // 2)
    group.exchange(keep, partner, give, partner)


def halving_doubling(x, group):
    work(x.view(-1), group, group.size // 2)
    return x
