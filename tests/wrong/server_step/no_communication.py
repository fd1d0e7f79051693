# verdict: deadlock
# points: 0
# hint: Each worker sends
def server_step(model, optimizer, group, weights):
    if optimizer is not None:
        optimizer.step()
