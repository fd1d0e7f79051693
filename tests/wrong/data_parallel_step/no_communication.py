# verdict: no-communication
# points: 0
# hint: all_reduce each p.grad
import torch.nn.functional as F


def data_parallel_step(model, x, y, optimizer, group):
    optimizer.zero_grad()
    F.mse_loss(model(x), y).backward()
    optimizer.step()
