# verdict: passed
# points: 5
import torch

from course_lib.collectives import ring_all_reduce


def clip_shards(shards, max_norm, group):
    squares = torch.zeros(len(shards), dtype=torch.float64)
    for i, shard in enumerate(shards):
        if shard.grad is not None:
            squares[i] = shard.grad.double().norm() ** 2
    norm = ring_all_reduce(squares, group).sum().sqrt()
    if norm > max_norm:
        for shard in shards:
            if shard.grad is not None:
                shard.grad = shard.grad * (max_norm / norm)
    return norm
