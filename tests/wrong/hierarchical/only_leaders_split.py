# verdict: error
# points: 0
# hint: Every rank calls split
from course_lib.collectives import ring_all_reduce, ring_reduce_scatter


def hierarchical(x, group, G):
    W = group.size
    node = group.split([list(range(first, first + G)) for first in range(0, W, G)])
    if node.rank == 0:
        rail = group.split([list(range(0, W, G))])
    chunks = list(x.view(-1).tensor_split(G))
    mine = ring_reduce_scatter(chunks, node)
    ring_all_reduce(mine, rail)
    return x
