# verdict: floor-of-log
# points: 3
# hint: (W - 1).bit_length()
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W.bit_length() - 1), 2 * (W - 1)
    return max(0, ring - tree) * latency * bandwidth / (tree - ring / W) if W > 3 else 0
