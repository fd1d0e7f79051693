# verdict: half-a-tree
# points: 0
# hint: up and down
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = (W - 1).bit_length(), 2 * (W - 1)
    return (ring - tree) * latency * bandwidth / (tree - ring / W or 1)
