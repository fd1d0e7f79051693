# verdict: passed
# points: 6
from course_lib.parameter_server import flat, gradients, write


def bounded_server(model, optimizer, group, clock, steps, k):
    done = {worker: 0 for worker in range(1, group.size)}
    waiting, vector = set(done), flat(model.parameters())
    while waiting or clock.running:
        for worker in sorted(waiting):
            if done[worker] - min(done.values()) <= k:
                waiting.remove(worker)
                group.send(flat(model.parameters()), worker)
                clock.start(worker)
        worker = clock.arrival()
        write(gradients(model), group.recv(vector, worker))
        optimizer.step()
        done[worker] += 1
        if done[worker] < steps:
            waiting.add(worker)
