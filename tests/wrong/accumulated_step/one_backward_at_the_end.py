# verdict: all-graphs-held
# points: 5
# hint: Call backward() in the loop
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def accumulated_step(model, parts, optimizer, group):
    optimizer.zero_grad()
    losses = [F.mse_loss(model(x), y) for x, y in parts]
    (sum(losses) / len(parts)).backward()
    for p in model.parameters():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
        all_reduce(p.grad, group, op="mean")
    optimizer.step()
