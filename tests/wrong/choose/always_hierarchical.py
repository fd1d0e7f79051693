# verdict: latency
# points: 3
# hint: fewest steps
def choose(machine, world_size, nbytes):
    return "hierarchical"
