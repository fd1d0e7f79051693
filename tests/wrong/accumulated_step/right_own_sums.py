# verdict: passed
# points: 6
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def accumulated_step(model, parts, optimizer, group):
    sums = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in reversed(parts):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        for total, p in zip(sums, model.parameters()):
            if p.grad is not None:
                total += p.grad
    for total, p in zip(sums, model.parameters()):
        p.grad = all_reduce(total, group) / (len(parts) * group.size)
    optimizer.step()
