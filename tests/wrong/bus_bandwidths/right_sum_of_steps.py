# verdict: passed
# points: 5
from itertools import repeat


def bus_bandwidths(n, gpus, nodes, inside, between):
    W = gpus * nodes
    slow, fast = between if nodes > 1 else inside, inside
    flat = sum(repeat(slow[0] + n / W / slow[1], 2 * W - 2))
    two = sum(repeat(fast[0] + n / gpus / fast[1], 2 * gpus - 2))
    two += sum(repeat(between[0] + n / W / between[1], 2 * nodes - 2))
    return [2 * (W - 1) / W * n / seconds for seconds in (flat, two)]
