# verdict: latency
# points: 4
# hint: fewest steps
def choose(machine, world_size, nbytes):
    if nbytes < 2**16:
        return "tree"
    return "hierarchical" if world_size > 8 else "ring"
