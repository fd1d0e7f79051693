# verdict: passed
# points: 6
from course_lib.parameter_server import flat, gradients, write


def server_step(model, optimizer, group, weights):
    vectors = [flat(model.parameters()) for _ in weights]
    handles = [group.irecv(vector, worker) for worker, vector in enumerate(vectors, 1)]
    for handle in handles:
        handle.wait()
    mean = sum(n * vector for n, vector in zip(weights, vectors)) / sum(weights)
    if optimizer:
        write(gradients(model), mean)
        optimizer.step()
        mean = flat(model.parameters())
    for handle in [group.isend(mean, worker) for worker in range(1, group.size)]:
        handle.wait()
