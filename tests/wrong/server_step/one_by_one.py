# verdict: one-by-one
# points: 4
# hint: then take one step
import torch

from course_lib.parameter_server import flat, gradients, write


def server_step(model, optimizer, group, weights):
    vector = flat(model.parameters())
    total = torch.zeros_like(vector)
    for worker, weight in enumerate(weights, 1):
        part = group.recv(vector, worker) * (weight / sum(weights))
        total += part
        if optimizer is not None:
            write(gradients(model), part)
            optimizer.step()
    answer = total if optimizer is None else flat(model.parameters())
    for worker in range(1, group.size):
        group.send(answer, worker)
