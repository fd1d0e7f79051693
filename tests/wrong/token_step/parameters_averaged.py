# verdict: averaged-parameters
# points: 0
# hint: Adam has turned
import torch.nn.functional as F

from course_lib.collectives import all_reduce


def token_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    mine = (y != -100).sum().double().reshape(1)
    share = mine / all_reduce(mine.clone(), group)
    F.cross_entropy(model(x), y, ignore_index=-100).backward()
    optimizer.step()
    for p in model.parameters():
        all_reduce(p.data.mul_(share), group)
