# verdict: one-too-few
# points: 3
# hint: exactly k ahead
from course_lib.parameter_server import flat, gradients, write


def bounded_server(model, optimizer, group, clock, steps, k):
    done = {worker: 0 for worker in range(1, group.size)}
    waiting, vector = set(done), flat(model.parameters())
    while waiting or clock.running:
        for worker in sorted(waiting):
            lead = done[worker] - min(done.values())
            if lead == 0 or lead < k:
                waiting.remove(worker)
                group.send(flat(model.parameters()), worker)
                clock.start(worker)
        worker = clock.arrival()
        write(gradients(model), group.recv(vector, worker))
        optimizer.step()
        done[worker] += 1
        if done[worker] < steps:
            waiting.add(worker)
