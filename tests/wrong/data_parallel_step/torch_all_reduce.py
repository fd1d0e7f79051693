# verdict: forbidden
# points: 0
# hint: course_lib.collectives
# runs in: soak
import torch.distributed as dist
import torch.nn.functional as F


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= group.size
    optimizer.step()
