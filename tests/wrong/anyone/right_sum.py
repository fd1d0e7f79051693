# verdict: passed
# points: 1
import torch

from course_lib.collectives import all_reduce


def anyone(flag, group):
    votes = torch.tensor([int(flag)])
    all_reduce(votes, group)
    return bool(votes > 0)
