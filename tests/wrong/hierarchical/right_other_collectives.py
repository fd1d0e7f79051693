# verdict: passed
# points: 6
import torch

from course_lib.collectives import all_gather, all_reduce, reduce_scatter


def hierarchical(x, group, G):
    W = group.size
    nodes = [[n * G + i for i in range(G)] for n in range(W // G)]
    node = group.split(nodes)
    rail = group.split([list(ranks) for ranks in zip(*nodes)])
    mine = reduce_scatter(list(x.reshape(-1).tensor_split(G)), node)
    all_reduce(mine, rail)
    return x.copy_(torch.cat(all_gather(mine, node)).view_as(x))
