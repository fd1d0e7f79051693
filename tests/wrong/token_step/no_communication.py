# verdict: no-communication
# points: 0
# hint: a model of its own
import torch.nn.functional as F


def token_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y, ignore_index=-100).backward()
    optimizer.step()
