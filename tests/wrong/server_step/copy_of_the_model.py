# verdict: server-not-updated
# points: 0
# hint: own model
from course_lib.parameter_server import flat, gradients, write


def server_step(model, optimizer, group, weights):
    vector = flat(model.parameters())
    total = sum(n * group.recv(vector, w).clone() for w, n in enumerate(weights, 1)) / sum(weights)
    if optimizer is not None:
        before = [p.detach().clone() for p in model.parameters()]
        write(gradients(model), total)
        optimizer.step()
        total = flat(model.parameters())
        for p, old in zip(model.parameters(), before):
            p.data.copy_(old)
    for worker in range(1, group.size):
        group.send(total, worker)
