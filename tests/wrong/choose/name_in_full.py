# verdict: no-name
# points: 0
# hint: without _all_reduce
def choose(machine, world_size, nbytes):
    return "ring_all_reduce"
