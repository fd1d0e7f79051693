# verdict: mean-of-means
# points: 0
# hint: A rank with few tokens
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def token_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y, ignore_index=-100).backward()
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        all_reduce(p.grad, group, op="mean")
    optimizer.step()
