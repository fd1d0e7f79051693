# verdict: deadlock
# points: 0
# hint: Call all_reduce on every rank
import torch

from course_lib.collectives import all_reduce


def anyone(flag, group):
    return flag and all_reduce(torch.tensor([1.0]), group).item() > 0
