# verdict: deadlock
# points: 0
def bounded_server(model, optimizer, group, clock, steps, k):
    for _ in range(steps):
        optimizer.step()
