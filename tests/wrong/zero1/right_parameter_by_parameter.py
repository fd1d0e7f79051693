# verdict: passed
# points: 6
import torch
import torch.nn.functional as F

from course_lib.collectives import all_gather, reduce_scatter


def zero1(model, batches, make_optimizer, group):
    def cut(tensor):
        return list(tensor.flatten().tensor_split(group.size))

    shards = [torch.nn.Parameter(cut(p.data)[group.rank].clone()) for p in model.parameters()]
    optimizer = make_optimizer(shards)
    for x, y in batches:
        optimizer.zero_grad()
        model.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p, shard in reversed(list(zip(model.parameters(), shards))):
            grad = torch.zeros_like(p) if p.grad is None else p.grad
            shard.grad = reduce_scatter(cut(grad), group) / group.size
        optimizer.step()
        for p, shard in zip(model.parameters(), shards):
            p.data.copy_(torch.cat(all_gather(shard.detach(), group)).view_as(p))
