# verdict: algorithm-bandwidth
# points: 0
# hint: does not depend on W


def bus_bandwidths(n, gpus, nodes, inside, between):
    def ring(size, ranks, link):
        latency, bandwidth = link
        return 2 * (ranks - 1) * (latency + size / ranks / bandwidth)

    W = gpus * nodes
    flat = ring(n, W, between if nodes > 1 else inside)
    two = ring(n, gpus, inside) + ring(n / gpus, nodes, between)
    return n / flat, n / two
