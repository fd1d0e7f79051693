# verdict: reduced-too-late
# points: 0
# hint: after backward
# runs in: soak
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def data_parallel_step(model, x, y, optimizer, group):
    loss = F.mse_loss(model(x), y)
    for p in model.parameters():
        if p.grad is None:
            p.grad = p.detach() * 0
        all_reduce(p.grad, group, op="mean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
