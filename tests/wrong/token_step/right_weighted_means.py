# verdict: passed
# points: 5
import torch
import torch.nn.functional as F

from course_lib.collectives import ring_all_reduce


def token_step(model, x, y, optimizer, group):
    mine = int((y != -100).sum())
    total = int(ring_all_reduce(torch.tensor([mine]), group))
    if mine:
        F.cross_entropy(model(x), y, ignore_index=-100).backward()
    flat = torch.cat([
        torch.zeros(p.numel()).double() if p.grad is None else p.grad.flatten() * mine / total
        for p in model.parameters()])
    ring_all_reduce(flat, group)
    start = 0
    for p in model.parameters():
        p.grad = flat[start:start + p.numel()].view_as(p)
        start += p.numel()
    optimizer.step()
    optimizer.zero_grad()
