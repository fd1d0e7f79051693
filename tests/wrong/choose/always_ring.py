# verdict: latency
# points: 2
# hint: fewest steps
def choose(machine, world_size, nbytes):
    return "ring"
