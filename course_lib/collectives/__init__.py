"""Collectives, built from send and receive.

W = group.size; n = bytes of the tensor, or of all parts together; "sent" is what one rank sends.

==================  =============  ======================  ==================================
call                changes        returns                 cost per rank
==================  =============  ======================  ==================================
barrier(g)          nothing        None                    ceil(log2 W) steps, 1 B each
broadcast(x, g)     x off root     x                       root: W-1 steps, (W-1)n sent
tree_broadcast      x off root     x                       <= ceil(log2 W) steps of n
scatter(parts, g)   nothing        part r of root's list   root: W-1 steps, (W-1)/W n sent
gather(x, g)        nothing        root: list, else None   root: W-1 steps, receives the rest
reduce(x, g)        x of the root  x                       root: W-1 steps, receives (W-1)n
tree_reduce         x of the root  x                       <= ceil(log2 W) steps of n
all_gather(x, g)    nothing        list, one per rank      as ring_all_gather
ring_all_gather     nothing        list, one per rank      W-1 steps, (W-1)/W n sent
reduce_scatter      nothing        sum of all parts r      as ring_reduce_scatter
ring_reduce_scatter nothing        sum of all parts r      W-1 steps, (W-1)/W n sent
all_reduce(x, g)    x              x                       as the one it chooses: choice.py
ring_all_reduce     x              x                       2(W-1) steps, 2(W-1)/W n sent
naive_all_reduce    x              x                       root: 2(W-1) steps, (W-1)n sent
tree_all_reduce     x              x                       2 ceil(log2 W) steps of n
recursive_doubling_ x              x                       log2 W steps of n
rabenseifner_       x              x                       2 log2 W steps, 2(W-1)/W n sent
hierarchical_(x, inner, outer)     x                       see recursive.py
torus_(x, g, shape) x              x                       2(X-1)+2(Y-1) steps on X x Y
all_to_all          nothing        list, part r of each    as pairwise_all_to_all
pairwise_all_to_all nothing        list, part r of each    W-1 steps, n minus the own part
==================  =============  ======================  ==================================

A tensor that is changed must be contiguous; others may have any strides. Tensors may have any
shape, any dtype, and no elements at all. Parts may be ragged: in scatter, gather, all_gather and
all_to_all shapes may differ from part to part and from rank to rank; in reduce_scatter from part to
part, equal on all ranks. op is "sum", "mean" (floating point only) or "max". root is a rank of the
group. All take `name=` (see calls.py).
"""

from .ahead import ahead_ring_all_reduce
from .all_reduce import naive_all_reduce, ring_all_reduce
from .choice import all_reduce
from .many import (
    all_gather,
    all_to_all,
    barrier,
    pairwise_all_to_all,
    reduce_scatter,
    ring_all_gather,
    ring_reduce_scatter,
)
from .recursive import (
    hierarchical_all_reduce,
    rabenseifner_all_reduce,
    recursive_doubling_all_reduce,
    torus_all_reduce,
    tree_all_reduce,
)
from .rooted import broadcast, gather, reduce, scatter, tree_broadcast, tree_reduce

__all__ = [
    "ahead_ring_all_reduce",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "hierarchical_all_reduce",
    "naive_all_reduce",
    "pairwise_all_to_all",
    "rabenseifner_all_reduce",
    "recursive_doubling_all_reduce",
    "reduce",
    "reduce_scatter",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_reduce_scatter",
    "scatter",
    "torus_all_reduce",
    "tree_all_reduce",
    "tree_broadcast",
    "tree_reduce",
]
