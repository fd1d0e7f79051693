# verdict: passed
# points: 4
import math


def crossover(world_size, latency, bandwidth):
    def ring_wins(n):
        levels, steps = math.ceil(math.log2(world_size)), 2 * (world_size - 1)
        tree = 2 * levels * (latency + n / bandwidth)
        return steps * (latency + n / world_size / bandwidth) <= tree

    low, high = 0.0, 2.0**60
    if ring_wins(low):
        return 0.0
    for _ in range(120):
        middle = (low + high) / 2
        low, high = (low, middle) if ring_wins(middle) else (middle, high)
    return high
