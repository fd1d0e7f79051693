# verdict: scaled-up
# points: 4
# hint: at most 1
import torch

from course_lib.collectives import all_reduce


def clip_shards(shards, max_norm, group):
    gradients = [s.grad for s in shards if s.grad is not None]
    squares = sum(((g.double() ** 2).sum() for g in gradients), torch.zeros(()).double())
    norm = all_reduce(squares.reshape(1), group).sqrt().item()
    for g in gradients:
        g.mul_(max_norm / (norm + 1e-6))
    return norm
