# verdict: no-number
# points: 0
# hint: number of bytes
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    print((ring - tree) * latency * bandwidth / (tree - ring / W))
