# verdict: no-tensor
# points: 0
# hint: Return


def exchange_with_neighbour(x, group):
    return None
