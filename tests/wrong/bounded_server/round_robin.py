# verdict: in-step
# points: 3
from course_lib.parameter_server import flat, gradients, write


def bounded_server(model, optimizer, group, clock, steps, k):
    vector = flat(model.parameters())
    for _ in range(steps):
        for worker in range(1, group.size):
            group.send(flat(model.parameters()), worker)
        for worker in range(1, group.size):
            write(gradients(model), group.recv(vector, worker))
            optimizer.step()
