# verdict: averaged-parameters
# points: 3
# hint: before optimizer.step
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
    for p in model.parameters():
        all_reduce(p.data, group, op="mean")
