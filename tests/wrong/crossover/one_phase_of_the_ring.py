# verdict: half-a-ring
# points: 0
# hint: two phases
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), W - 1
    return (ring - tree) * latency * bandwidth / (tree - ring / W) if W > 1 else 0
