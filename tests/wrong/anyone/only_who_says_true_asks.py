# verdict: own-flag
# points: 0
# hint: whatever its own flag
# hint: Ask all of them
import torch

from course_lib.collectives import all_reduce


def anyone(flag, group):
    return flag and all_reduce(torch.tensor([1.0]), group).item() > 0
