# verdict: passed
# points: 4
from course_lib.costs import crossover_bytes, ring_all_reduce_seconds, tree_all_reduce_seconds


def crossover(world_size, latency, bandwidth):
    rates = dict(world_size=world_size, latency=latency, bandwidth=bandwidth)
    return crossover_bytes(lambda n: tree_all_reduce_seconds(n, **rates),
                           lambda n: ring_all_reduce_seconds(n, **rates))
