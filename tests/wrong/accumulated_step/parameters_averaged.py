# verdict: averaged-parameters
# points: 0
# hint: Adam has turned
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def accumulated_step(model, parts, optimizer, group):
    optimizer.zero_grad()
    for x, y in parts:
        (F.mse_loss(model(x), y) / len(parts)).backward()
    optimizer.step()
    for p in model.parameters():
        all_reduce(p.data, group, op="mean")
