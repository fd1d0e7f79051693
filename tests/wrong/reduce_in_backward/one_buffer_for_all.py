# verdict: hidden-copy
# points: 0
# hint: buffer
import torch

from course_lib.collectives import reduce_scatter


def reduce_in_backward(units, shards, group):
    buffer = torch.zeros(sum(len(s) for s in shards) * group.size, dtype=torch.float64)
    start = 0
    for unit, shard in zip(units, shards):
        trainable = [p for p in unit.parameters() if p.requires_grad]
        missing = set(trainable)
        room = buffer[start:start + len(shard) * group.size]
        start += len(room)

        def arrived(p, unit=unit, shard=shard, trainable=trainable, missing=missing, room=room):
            missing.discard(p)
            if missing:
                return
            missing.update(trainable)
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in unit.parameters()]
            flat = torch.cat([g.flatten() for g in grads])
            unit.zero_grad()
            room[:len(flat)] = flat
            flat = room
            mine = reduce_scatter(list(flat.chunk(group.size)), group, "mean")
            shard.grad = mine if shard.grad is None else shard.grad + mine

        for p in trainable:
            p.register_post_accumulate_grad_hook(arrived)
