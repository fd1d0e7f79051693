# verdict: passed
# points: 6
import torch
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    grads = [p.grad for p in model.parameters()]
    flat = torch.cat([g.reshape(-1) for g in grads])
    all_reduce(flat, group, op="mean")
    for g, part in zip(grads, flat.split([g.numel() for g in grads])):
        g.copy_(part.view_as(g))
    optimizer.step()
