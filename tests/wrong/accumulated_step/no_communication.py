# verdict: no-communication
# points: 0
# hint: a model of its own
import torch.nn.functional as F


def accumulated_step(model, parts, optimizer, group):
    optimizer.zero_grad()
    for x, y in parts:
        (F.mse_loss(model(x), y) / len(parts)).backward()
    optimizer.step()
