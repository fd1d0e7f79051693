# verdict: own-tensor
# points: 0
# hint: empty_like


def exchange_with_neighbour(x, group):
    return x
