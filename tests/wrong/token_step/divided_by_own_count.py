# verdict: not-a-number
# points: 4
# hint: divides by 0
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def token_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    mine = (y != -100).sum().double()
    tokens = all_reduce(mine.clone().reshape(1), group)
    loss = F.cross_entropy(model(x), y, ignore_index=-100, reduction="sum")
    loss.backward()
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        p.grad = p.grad / mine * (mine / tokens)
        all_reduce(p.grad, group)
    optimizer.step()
