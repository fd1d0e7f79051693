# verdict: local-norm
# points: 0
# hint: Add the squares over ranks first
import torch


def clip_shards(shards, max_norm, group):
    gradients = [s.grad for s in shards if s.grad is not None]
    squares = sum(((g.double() ** 2).sum() for g in gradients), torch.zeros(()).double())
    norm = squares.sqrt().item()
    for g in gradients:
        g.mul_(min(1.0, max_norm / (norm + 1e-6)))
    return norm
