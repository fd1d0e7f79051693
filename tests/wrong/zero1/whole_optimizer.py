# verdict: whole-optimizer
# points: 0
# hint: Give make_optimizer your shard only
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def zero1(model, batches, make_optimizer, group):
    optimizer = make_optimizer(model.parameters())
    for x, y in batches:
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            all_reduce(p.grad, group, op="mean")
        optimizer.step()
        optimizer.zero_grad()
