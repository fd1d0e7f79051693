# verdict: passed
# points: 4
import math


def state_bytes(units, world_size, stage):
    shard = sum(math.ceil(n / world_size) for n in units)
    held = [shard if stage >= first else sum(units) for first in (3, 2, 1)]
    return tuple(size * n for size, n in zip((2, 2, 12), held))
