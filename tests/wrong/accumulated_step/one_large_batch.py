# verdict: all-graphs-held
# points: 5
# hint: as if they were one batch
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def accumulated_step(model, parts, optimizer, group):
    optimizer.zero_grad()
    xs, ys = (torch.cat(both) for both in zip(*parts))
    F.mse_loss(model(xs), ys).backward()
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        all_reduce(p.grad, group, op="mean")
    optimizer.step()
