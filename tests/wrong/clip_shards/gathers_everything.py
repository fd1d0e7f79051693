# verdict: gathers-everything
# points: 4
# hint: one number
import torch

from course_lib.collectives import all_gather


def clip_shards(shards, max_norm, group):
    gradients = [s.grad for s in shards if s.grad is not None]
    mine = torch.cat([torch.zeros(1).double(), *[g.double() for g in gradients]])
    norm = torch.cat(all_gather(mine, group)).norm().item()
    for g in gradients:
        g.mul_(min(1.0, max_norm / (norm + 1e-6)))
    return norm
