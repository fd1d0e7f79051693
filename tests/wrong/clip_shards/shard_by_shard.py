# verdict: shard-by-shard
# points: 0
# hint: One norm, one factor
import torch

from course_lib.collectives import all_reduce


def clip_shards(shards, max_norm, group):
    gradients = [s.grad for s in shards if s.grad is not None]
    squares = sum(((g.double() ** 2).sum() for g in gradients), torch.zeros(()).double())
    norm = all_reduce(squares.reshape(1), group).sqrt().item()
    for g in gradients:
        g.mul_(min(1.0, max_norm / (g.norm().item() + 1e-6)))
    return norm
