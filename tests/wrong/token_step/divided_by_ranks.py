# verdict: divided-by-ranks
# points: 0
# hint: not by the number of ranks
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def token_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y, ignore_index=-100, reduction="sum")
    (loss / group.size).backward()
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        all_reduce(p.grad, group)
    optimizer.step()
