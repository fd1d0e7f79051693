# verdict: one-leader
# points: 4
# hint: talks for all
from course_lib.collectives import broadcast, reduce, ring_all_reduce


def hierarchical(x, group, G):
    W = group.size
    node = group.split([list(range(first, first + G)) for first in range(0, W, G)])
    rail = group.split([list(range(place, W, G)) for place in range(G)])
    reduce(x, node, 0)
    if node.rank == 0:
        ring_all_reduce(x, rail)
    return broadcast(x, node, 0)
