# verdict: gathered-late
# points: 0
# hint: after every step
import torch
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from course_lib.collectives import all_gather, reduce_scatter


def zero1(model, batches, make_optimizer, group):
    parameters, W = list(model.parameters()), group.size
    flat = parameters_to_vector(parameters).detach()
    shard = torch.nn.Parameter(flat.tensor_split(W)[group.rank].clone())
    optimizer = make_optimizer([shard])
    for x, y in batches:
        F.mse_loss(model(x), y).backward()
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        parts = list(parameters_to_vector(grads).tensor_split(W))
        shard.grad = reduce_scatter(parts, group, "mean")
        optimizer.step()
        model.zero_grad()
    vector_to_parameters(torch.cat(all_gather(shard.detach(), group)), parameters)
