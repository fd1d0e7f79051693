# verdict: weights-ignored
# points: 5
# hint: Use weights
import torch

from course_lib.parameter_server import flat, gradients, write


def server_step(model, optimizer, group, weights):
    vector = flat(model.parameters())
    total = torch.zeros_like(vector)
    for worker in range(1, group.size):
        total += group.recv(vector, worker) / len(weights)
    if optimizer is not None:
        write(gradients(model), total)
        optimizer.step()
        total = flat(model.parameters())
    for worker in range(1, group.size):
        group.send(total, worker)
