# verdict: divided-by-two
# points: 4
# hint: group.size
# runs in: soak
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    if group.size > 1:
        for p in model.parameters():
            all_reduce(p.grad, group)
            p.grad /= 2
    optimizer.step()
