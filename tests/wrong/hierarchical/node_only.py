# verdict: rank-missing
# points: 0
# hint: range(place, W, G)
from course_lib.collectives import ring_all_reduce


def hierarchical(x, group, G):
    W = group.size
    node = group.split([list(range(first, first + G)) for first in range(0, W, G)])
    return ring_all_reduce(x, node)
