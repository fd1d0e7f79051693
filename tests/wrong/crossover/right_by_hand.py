# verdict: passed
# points: 4
def crossover(world_size, latency, bandwidth):
    W = world_size
    tree, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    if ring <= tree:
        return 0
    return (ring - tree) * latency * bandwidth / (tree - ring / W)
