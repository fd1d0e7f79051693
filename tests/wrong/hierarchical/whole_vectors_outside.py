# verdict: whole-vector
# points: 4
# hint: Reduce-scatter inside
from course_lib.collectives import ring_all_reduce


def hierarchical(x, group, G):
    W = group.size
    node = group.split([list(range(first, first + G)) for first in range(0, W, G)])
    rail = group.split([list(range(place, W, G)) for place in range(G)])
    ring_all_reduce(x, node)
    return ring_all_reduce(x, rail)
