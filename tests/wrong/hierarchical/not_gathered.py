# verdict: rank-missing
# points: 0
# hint: all-gather inside
from course_lib.collectives import ring_all_reduce, ring_reduce_scatter


def hierarchical(x, group, G):
    W = group.size
    node = group.split([list(range(first, first + G)) for first in range(0, W, G)])
    rail = group.split([list(range(place, W, G)) for place in range(G)])
    chunks = list(x.view(-1).tensor_split(G))
    mine = ring_reduce_scatter(chunks, node)
    chunks[node.rank].copy_(ring_all_reduce(mine, rail))
    return x
