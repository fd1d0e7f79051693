# verdict: reduced-twice
# points: 4
# hint: reduced twice
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
        all_reduce(p.grad, group)
        all_reduce(p.grad, group, op="mean")
    optimizer.step()
