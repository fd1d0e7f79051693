# verdict: deadlock
# points: 0
# hint: go through
from course_lib.parameter_server import flat, gradients, write


def bounded_server(model, optimizer, group, clock, steps, k):
    done = {worker: 0 for worker in range(1, group.size)}
    vector = flat(model.parameters())
    for worker in done:
        group.send(flat(model.parameters()), worker)
        clock.start(worker)
    while clock.running:
        worker = clock.arrival()
        write(gradients(model), group.recv(vector, worker))
        optimizer.step()
        done[worker] += 1
        if done[worker] < steps and done[worker] - min(done.values()) <= k:
            group.send(flat(model.parameters()), worker)
            clock.start(worker)
