# verdict: half-the-steps
# points: 0
# hint: as many again


def bus_bandwidths(n, gpus, nodes, inside, between):
    def ring(size, ranks, link):
        latency, bandwidth = link
        return (ranks - 1) * (latency + size / ranks / bandwidth)

    W = gpus * nodes
    flat = ring(n, W, between if nodes > 1 else inside)
    two = ring(n, gpus, inside) + ring(n / gpus, nodes, between)
    factor = 2 * (W - 1) / W
    return factor * n / flat, factor * n / two
