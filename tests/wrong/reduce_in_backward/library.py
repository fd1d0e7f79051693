# verdict: forbidden
# points: 0
# hint: register_post_accumulate_grad_hook
import torch
import torch.nn.functional as F

from course_lib.zero_units import own_sum


def reduce_in_backward(units, shards, group):
    for unit, shard in zip(units, shards):
        trainable = [p for p in unit.parameters() if p.requires_grad]
        missing = set(trainable)

        def arrived(p, unit=unit, shard=shard, trainable=trainable, missing=missing):
            missing.discard(p)
            if missing:
                return
            missing.update(trainable)
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in unit.parameters()]
            flat = torch.cat([g.flatten() for g in grads])
            unit.zero_grad()
            flat = F.pad(flat, (0, len(shard) * group.size - len(flat)))
            mine = own_sum(flat, group, "unit")
            shard.grad = mine if shard.grad is None else shard.grad + mine

        for p in trainable:
            p.register_post_accumulate_grad_hook(arrived)
