# verdict: only-two-ranks
# points: 1
# hint: 1 - rank
import torch


def exchange_with_neighbour(x, group):
    received = torch.empty_like(x)
    return group.exchange(x, 1 - group.rank, received, 1 - group.rank)
