# verdict: reduced-at-the-end
# points: 0
# hint: the peak of ZeRO-1
import torch
import torch.nn.functional as F

from course_lib.collectives import reduce_scatter


def reduce_in_backward(units, shards, group):
    trainable = [p for unit in units for p in unit.parameters() if p.requires_grad]
    missing = set(trainable)

    def arrived(p):
        missing.discard(p)
        if missing:
            return
        missing.update(trainable)
        for unit, shard in zip(units, shards):
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in unit.parameters()]
            flat = torch.cat([g.flatten() for g in grads])
            unit.zero_grad()
            flat = F.pad(flat, (0, len(shard) * group.size - len(flat)))
            mine = reduce_scatter(list(flat.chunk(group.size)), group, "mean")
            shard.grad = mine if shard.grad is None else shard.grad + mine

    for p in trainable:
        p.register_post_accumulate_grad_hook(arrived)
