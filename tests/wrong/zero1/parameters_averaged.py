# verdict: averaged-parameters
# points: 0
# hint: SGD does not see
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def zero1(model, batches, make_optimizer, group):
    optimizer = make_optimizer(model.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            all_reduce(p.data, group, op="mean")
