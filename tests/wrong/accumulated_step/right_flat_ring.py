# verdict: passed
# points: 6
import torch
import torch.nn.functional as F

from course_lib.collectives import ring_all_reduce


def accumulated_step(model, parts, optimizer, group):
    optimizer.zero_grad()
    for x, y in parts:
        F.mse_loss(model(x), y).backward()
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    flat = ring_all_reduce(torch.cat([g.flatten() for g in grads]), group) / len(parts) / group.size
    for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
        p.grad = g.view_as(p)
    optimizer.step()
