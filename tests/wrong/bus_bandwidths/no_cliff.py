# verdict: no-cliff
# points: 3
# hint: leave their node


def bus_bandwidths(n, gpus, nodes, inside, between):
    def ring(size, ranks, link):
        latency, bandwidth = link
        return 2 * (ranks - 1) * (latency + size / ranks / bandwidth)

    W = gpus * nodes
    flat = ring(n, W, inside)
    two = ring(n, gpus, inside) + ring(n / gpus, nodes, between)
    factor = 2 * (W - 1) / W
    return factor * n / flat, factor * n / two
