# verdict: passed
# points: 6
import torch.nn.functional as F

from course_lib.collectives import naive_all_reduce


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    for p in reversed(list(model.parameters())):
        p.grad = naive_all_reduce(p.grad / group.size, group)
    optimizer.step()
