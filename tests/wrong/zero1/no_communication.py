# verdict: no-communication
# points: 0
# hint: a model of its own
import torch.nn.functional as F


def zero1(model, batches, make_optimizer, group):
    optimizer = make_optimizer(model.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
