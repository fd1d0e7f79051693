# verdict: nothing-reduced
# points: 0
# hint: Register hooks
import torch

from course_lib.collectives import reduce_scatter


def reduce_in_backward(units, shards, group):
    for shard in shards:
        parts = [torch.zeros_like(shard) for _ in range(group.size)]
        shard.grad = reduce_scatter(parts, group, "mean")
