# verdict: passed
# points: 6
from course_lib import costs


def choose(machine, world_size, nbytes):
    levels = machine.levels
    G = min(levels[0].ranks, world_size)
    inside, outside = levels[0], levels[-1]
    rates = (inside.latency, inside.bandwidth, outside.latency, outside.bandwidth)
    slow = (outside.latency, outside.bandwidth)
    rails = len({machine.route(i, i + G).links for i in range(G)}) if G < world_size else 0
    wires = any(machine.route(0, G).links) if G < world_size else False
    times = {
        "recursive_doubling": costs.recursive_doubling_all_reduce_seconds(
            nbytes, world_size, *slow),
        "ring": costs.ring_all_reduce_seconds(nbytes, world_size, *slow),
        "hierarchical": costs.hierarchical_all_reduce_seconds(
            nbytes, G, world_size // G, *rates),
    }
    if wires and rails == 1:
        del times["hierarchical"]
    return min(times, key=times.get)
