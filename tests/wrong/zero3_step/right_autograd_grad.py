# verdict: passed
# points: 7
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


def reduced(unit, grads, shard, group):
    pairs = zip(unit.parameters(), grads)
    flat = torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in pairs])
    flat = F.pad(flat, (0, len(shard) * group.size - len(flat)))
    return reduce_scatter(list(flat.chunk(group.size)), group, "mean")


def zero3_step(units, flats, shards, x, y, optimizer, group):
    stack = []
    x = x.requires_grad_()
    for unit, flat, shard in zip(units, flats, shards):
        reshard = unshard(flat, shard, group)
        out = unit(x)
        reshard()
        stack.append((unit, flat, shard, x, out))
        x = out.detach().requires_grad_()
    upstream, = torch.autograd.grad(F.mse_loss(x, y), x)
    for unit, flat, shard, inputs, out in reversed(stack):
        reshard = unshard(flat, shard, group)
        wanted = [inputs, *unit.parameters()]
        upstream, *grads = torch.autograd.grad(out, wanted, upstream, allow_unused=True)
        reshard()
        shard.grad = reduced(unit, grads, shard, group)
    optimizer.step()
    optimizer.zero_grad()
