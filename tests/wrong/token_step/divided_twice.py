# verdict: divided-twice
# points: 0
# hint: add up to 1
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def token_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    tokens = all_reduce((y != -100).sum().double().reshape(1), group)
    loss = F.cross_entropy(model(x), y, ignore_index=-100, reduction="sum")
    (loss / tokens).sum().backward()
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        all_reduce(p.grad, group, op="mean")
    optimizer.step()
