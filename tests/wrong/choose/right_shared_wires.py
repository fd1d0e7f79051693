# verdict: passed
# points: 6
def choose(machine, world_size, nbytes):
    close = machine.levels[0]
    if nbytes / close.bandwidth < close.latency:
        return "recursive_doubling"
    G = close.ranks
    if G is None or G >= world_size:
        return "rabenseifner"
    shared = set(machine.route(0, G).resources) & set(machine.route(1, G + 1).resources)
    return "ring" if shared else "hierarchical"
