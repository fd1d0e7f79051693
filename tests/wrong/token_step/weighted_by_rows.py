# verdict: weighted-by-rows
# points: 0
# hint: You weigh by rows
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def token_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    rows = all_reduce(torch.tensor([float(len(x))]), group)
    (F.cross_entropy(model(x), y, ignore_index=-100) * len(x) / rows).sum().backward()
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        all_reduce(p.grad, group)
    optimizer.step()
