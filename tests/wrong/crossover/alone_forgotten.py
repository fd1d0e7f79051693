# verdict: error
# points: 3
# hint: divided by zero
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    return max(0, ring - tree) * latency * bandwidth / (tree - ring / W)
