# verdict: passed
# points: 5
import torch

from course_lib.collectives import all_gather


def clip_shards(shards, max_norm, group):
    gradients = [s.grad for s in shards if s.grad is not None]
    squares = sum(((g.double() ** 2).sum() for g in gradients), torch.zeros(()).double())
    norm = sum(all_gather(squares, group)).sqrt().item()
    for g in gradients:
        g.mul_(min(1.0, max_norm / (norm + 1e-6)))
    return norm
