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


def reduced(unit, shard, group):
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in unit.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    unit.zero_grad()
    flat = F.pad(flat, (0, len(shard) * group.size - len(flat)))
    return reduce_scatter(list(flat.chunk(group.size)), group, "mean")


def zero3_step(units, flats, shards, x, y, optimizer, group):
    frees, handles = {}, []

    def gather(i):
        if i not in frees:
            frees[i] = unshard(flats[i], shards[i], group)

    def release(i):
        frees.pop(i)()

    def after(unit, inputs, output, i):
        release(i)
        output.register_hook(lambda _: gather(i))

    for i, unit in enumerate(units):
        handles.append(unit.register_forward_pre_hook(lambda *_, i=i: gather(i), prepend=True))
        handles.append(unit.register_forward_hook(lambda *args, i=i: after(*args, i)))
    x.requires_grad_()
    values = [x]
    for unit in units:
        values.append(unit(values[-1]))
    for i, value in enumerate(values[:-1]):
        value.register_hook(lambda _, i=i: (release(i), finish(i)))

    def finish(i):
        shards[i].grad = reduced(units[i], shards[i], group)

    F.mse_loss(values[-1], y).backward()
    for handle in handles:
        handle.remove()
    optimizer.step()
    optimizer.zero_grad()
