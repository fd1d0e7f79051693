# verdict: error
# runs in: soak


def exchange_with_neighbour(x, group):
    return exchange_with_neighbour(x, group)
