# verdict: deadlock
# points: 0
# hint: every rank
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    for p in model.parameters():
        if group.rank == 0:
            all_reduce(p.grad, group, op="mean")
    optimizer.step()
