# verdict: passed
# points: 6
import torch

from course_lib.parameter_server import flat, gradients, write


def server_step(model, optimizer, group, weights):
    vector = flat(model.parameters())
    total = torch.zeros_like(vector)
    for worker, weight in enumerate(weights, 1):
        total += group.recv(vector, worker) * (weight / sum(weights))
    if optimizer is not None:
        write(gradients(model), total)
        optimizer.step()
        total = flat(model.parameters())
    for worker in range(1, group.size):
        group.send(total, worker)
