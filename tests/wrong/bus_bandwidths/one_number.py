# verdict: no-pair
# points: 0
# hint: two numbers


def bus_bandwidths(n, gpus, nodes, inside, between):
    def ring(size, ranks, link):
        latency, bandwidth = link
        return 2 * (ranks - 1) * (latency + size / ranks / bandwidth)

    W = gpus * nodes
    flat = ring(n, W, between if nodes > 1 else inside)
    return 2 * (W - 1) / W * n / flat
