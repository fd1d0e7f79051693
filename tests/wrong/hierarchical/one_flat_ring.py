# verdict: flat-ring
# points: 4
# hint: one ring over all ranks
from course_lib.collectives import ring_all_reduce


def hierarchical(x, group, G):
    return ring_all_reduce(x, group)
