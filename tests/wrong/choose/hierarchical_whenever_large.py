# verdict: shared-wire
# points: 5
# hint: share one wire
def choose(machine, world_size, nbytes):
    return "recursive_doubling" if nbytes < 2**16 else "hierarchical"
