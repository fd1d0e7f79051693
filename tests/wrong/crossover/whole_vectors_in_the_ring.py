# verdict: whole-vector-in-the-ring
# points: 0
# hint: a little less than 2n
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    return (ring - tree) * latency * bandwidth / (tree - 2) if ring > tree else 0
