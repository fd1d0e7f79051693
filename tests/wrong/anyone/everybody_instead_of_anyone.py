# verdict: all-instead-of-any
# points: 0
# hint: compare with 0
import torch

from course_lib.collectives import all_reduce


def anyone(flag, group):
    return all_reduce(torch.tensor([float(flag)]), group).item() == group.size
