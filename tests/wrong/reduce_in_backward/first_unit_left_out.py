# verdict: unit-missing
# points: 0
# hint: hooks of its own
import torch
import torch.nn.functional as F

from course_lib.collectives import reduce_scatter


def parts_of(unit, W):
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in unit.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    return list(F.pad(flat, (0, -len(flat) % W)).chunk(W))


def reduce_in_backward(units, shards, group):
    for unit, shard in zip(units[1:], shards[1:]):
        trainable = [p for p in unit.parameters() if p.requires_grad]
        missing = set(trainable)

        def arrived(p, unit=unit, shard=shard, trainable=trainable, missing=missing):
            missing.discard(p)
            if not missing:
                missing.update(trainable)
                parts = parts_of(unit, group.size)
                unit.zero_grad()
                mine = reduce_scatter(parts, group, "mean")
                shard.grad = mine if shard.grad is None else shard.grad + mine

        for p in unit.parameters():
            if p.requires_grad:
                p.register_post_accumulate_grad_hook(arrived)
