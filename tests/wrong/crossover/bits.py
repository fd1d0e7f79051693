# verdict: bits-not-bytes
# points: 0
# hint: bytes per second
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    return 8 * (ring - tree) * latency * bandwidth / (tree - ring / W) if ring > tree else 0
