# verdict: passed
# points: 6
# runs in: soak
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    for p in model.parameters():
        all_reduce(p.grad, group)
        p.grad /= group.size
    optimizer.step()
