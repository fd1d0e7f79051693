# verdict: own-part
# points: 0
# hint: copy the gathered chunks
from course_lib.collectives import ring_all_gather, ring_all_reduce, ring_reduce_scatter


def hierarchical(x, group, G):
    W = group.size
    node = group.split([list(range(first, first + G)) for first in range(0, W, G)])
    rail = group.split([list(range(place, W, G)) for place in range(G)])
    chunks = list(x.view(-1).tensor_split(G))
    mine = ring_reduce_scatter(chunks, node)
    ring_all_reduce(mine, rail)
    ring_all_gather(mine, node)
    return x
