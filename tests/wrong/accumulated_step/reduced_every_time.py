# verdict: reduced-every-time
# points: 0
# hint: reduce once, after the last
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def accumulated_step(model, parts, optimizer, group):
    optimizer.zero_grad()
    for x, y in parts:
        (F.mse_loss(model(x), y) / len(parts)).backward()
        for p in model.parameters():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            all_reduce(p.grad, group, op="mean")
    optimizer.step()
