# verdict: passed
# points: 1
import torch

from course_lib.collectives import all_reduce


def anyone(flag, group):
    return all_reduce(torch.tensor([float(flag)]), group, op="max").item() > 0
