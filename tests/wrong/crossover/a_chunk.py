# verdict: chunk-not-vector
# points: 0
# hint: not of a chunk
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    return (ring - tree) * latency * bandwidth / (tree - ring / W) / W if ring > tree else 0
