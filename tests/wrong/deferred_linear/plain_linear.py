# verdict: not-deferred
# points: 0
# hint: backward returns None for the weight
def deferred_linear(x, weight, queue):
    queue.append(lambda: None)
    return x @ weight.T
