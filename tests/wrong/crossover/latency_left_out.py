# verdict: wrong-size
# points: 0
# hint: A + B n
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    return (ring - tree) * bandwidth / (tree - ring / W) if ring > tree else 0
