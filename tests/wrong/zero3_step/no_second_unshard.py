# verdict: still-empty
# points: 0
# hint: again before its backward
import torch
import torch.nn.functional as F

from course_lib.collectives import all_gather, reduce_scatter


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    for part, arrived in zip(flat.chunk(group.size), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard


def reduced(unit, shard, group):
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in unit.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    unit.zero_grad()
    flat = F.pad(flat, (0, len(shard) * group.size - len(flat)))
    return reduce_scatter(list(flat.chunk(group.size)), group, "mean")


def zero3_step(units, flats, shards, x, y, optimizer, group):
    stack = []
    for unit, flat, shard in zip(units, flats, shards):
        reshard = unshard(flat, shard, group)
        out = unit(x)
        reshard()
        stack.append((unit, flat, shard, x, out))
        x = out.detach().requires_grad_()
    F.mse_loss(x, y).backward()
    for unit, _, shard, inputs, out in reversed(stack):
        out.backward(x.grad)
        shard.grad, x = reduced(unit, shard, group), inputs
    optimizer.step()
    optimizer.zero_grad()
