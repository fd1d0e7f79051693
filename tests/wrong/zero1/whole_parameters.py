# verdict: whole-parameters
# points: 0
# hint: end to end
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce, broadcast


def zero1(model, batches, make_optimizer, group):
    parameters = list(model.parameters())
    mine = parameters[group.rank::group.size]
    optimizer = make_optimizer(mine) if mine else None
    for x, y in batches:
        F.mse_loss(model(x), y).backward()
        for p in parameters:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            all_reduce(p.grad, group, op="mean")
        if optimizer:
            optimizer.step()
        model.zero_grad()
        for number, p in enumerate(parameters):
            broadcast(p.data, group, number % group.size)
