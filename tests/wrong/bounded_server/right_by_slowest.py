# verdict: passed
# points: 6
import torch

from course_lib.parameter_server import flat, gradients, write


def bounded_server(model, optimizer, group, clock, steps, k):
    done, waiting = [0] * group.size, list(range(group.size - 1, 0, -1))
    while sum(done) < steps * (group.size - 1):
        slowest = min(done[1:])
        for worker in [w for w in waiting if done[w] <= slowest + k]:
            waiting.remove(worker)
            clock.start(worker)
            group.isend(flat(model.parameters()), worker).wait()
        worker = clock.arrival()
        gradient = torch.empty_like(flat(model.parameters()))
        group.irecv(gradient, worker).wait()
        optimizer.zero_grad()
        write(gradients(model), gradient)
        optimizer.step()
        done[worker] += 1
        if done[worker] < steps:
            waiting.append(worker)
