# verdict: missing-gradient
# points: 5
# hint: It counts as zero
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def accumulated_step(model, parts, optimizer, group):
    optimizer.zero_grad()
    for x, y in parts:
        (F.mse_loss(model(x), y) / len(parts)).backward()
    for p in model.parameters():
        all_reduce(p.grad, group, op="mean")
    optimizer.step()
