# verdict: passed
# points: 5
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def token_step(model, x, y, optimizer, group):
    F.cross_entropy(model(x), y, ignore_index=-100, reduction="sum").backward()
    count = all_reduce((y != -100).sum().double().reshape(1), group)
    for p in reversed(list(model.parameters())):
        p.grad = all_reduce(torch.zeros_like(p) if p.grad is None else p.grad, group) / count
    optimizer.step()
    optimizer.zero_grad()
