"""All-reduce along trees, hypercubes and tori: few steps for short vectors, levels for machines."""

from __future__ import annotations

import torch

from ..calls import add_into, collective, copy_into, scratch
from ..group import Group
from .all_reduce import ring_all_reduce
from .checked import check_tensor, divide
from .many import pass_around, ring_reduce_scatter
from .rooted import tree_broadcast, tree_reduce


@collective("shape", "op")
def tree_all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks: tree_reduce, tree_broadcast.

    Cost: 2 ceil(log2 W) steps of n bytes on the longest path.
    """
    tree_reduce(x, group, 0, op)
    return tree_broadcast(x, group, 0)


@collective("shape", "op")
def recursive_doubling_all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks.

    In step k each rank swaps its partial sum with the rank whose number differs in bit k.

    Cost per rank: log2 W steps of n bytes; two more where W is not a power of two: the surplus
    ranks hand their x to a neighbour first and get the result from it (Thakur, Rabenseifner and
    Gropp 2005, "Optimization of collective communication operations in MPICH").
    """
    check_tensor(x, group, op)
    place, size, rank_of = _fold(x, group, op)
    distance = 1
    while place is not None and distance < size:
        partner = rank_of(place ^ distance)
        add_into(x, group.exchange(x, partner, scratch(x, group), partner), group, op)
        distance *= 2
    if place is not None:
        divide(x, group, op)
    return _unfold(x, group, place)


@collective("shape", "op")
def rabenseifner_all_reduce(x: torch.Tensor, group: Group, op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks.

    Reduce-scatter by recursive halving (in each step a rank gives away half of what it still sums),
    then all-gather by recursive doubling, along the same pairs in reverse.

    Cost per rank: 2 log2 W steps, 2(W-1)/W n bytes sent; where W is not a power of two, two more
    steps of n bytes, and W is the power of two below in the rest (Thakur et al. 2005, section 4.5).
    """
    check_tensor(x, group, op)
    place, size, rank_of = _fold(x, group, op)
    if place is not None:
        chunks = x.view(-1).tensor_split(size)
        edges = [0]
        for chunk in chunks:
            edges.append(edges[-1] + chunk.numel())
        flat, low, high, steps = x.view(-1), 0, size, []
        while high - low > 1:
            middle = (low + high) // 2
            mine = (low, middle) if place < middle else (middle, high)
            theirs = (middle, high) if place < middle else (low, middle)
            partner = rank_of(place ^ (middle - low))
            keep, give = (flat[edges[a]:edges[b]] for a, b in (mine, theirs))
            add_into(keep, group.exchange(give, partner, scratch(keep, group), partner), group, op)
            steps.append((partner, keep, give))
            low, high = mine
        divide(chunks[place], group, op)
        for partner, keep, give in reversed(steps):
            group.exchange(keep, partner, give, partner)
    return _unfold(x, group, place)


@collective("shape", "op")
def hierarchical_all_reduce(x: torch.Tensor, inner: Group, outer: Group, op: str = "sum"
                            ) -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over all ranks of both levels.

    Reduce-scatter inside the node (`inner`), ring all-reduce of the own part with the ranks of the
    same place in other nodes (`outer`: one ring per rail), all-gather inside the node.

    Cost per rank, G = inner.size, K = outer.size: 2(G-1)/G n bytes inside the node, and
    2(K-1)/K n/G between nodes; 2(G-1) + 2(K-1) steps.
    """
    return _over_axes(x, [inner, outer], op)


@collective("shape", "op", "shape_of_torus")
def torus_all_reduce(x: torch.Tensor, group: Group, shape_of_torus: tuple[int, ...] | None = None,
                     op: str = "sum") -> torch.Tensor:
    """After: x (changed in place) of every rank is the sum over ranks, which form a torus.

    Rank r has the coordinates of index r in an array of that shape, last axis fastest; by default
    the shape is the most square one of two axes. Reduce-scatter along the last axis, then of the
    own part along the axis before, and so on; then all-gather in the opposite order. Every message
    goes to a direct neighbour.

    Cost per rank on X x Y: 2(X-1) + 2(Y-1) steps, 2 n ((Y-1)/Y + (X-1)/(XY)) bytes sent.
    """
    return _over_axes(x, axis_groups(group, shape_of_torus or most_square(group.size)), op)


def most_square(size: int) -> tuple[int, int]:
    """The two factors of `size` that are closest to each other, the smaller one first."""
    small = next(a for a in range(int(size ** 0.5), 0, -1) if size % a == 0)
    return small, size // small


def axis_groups(group: Group, shape: tuple[int, ...]) -> list[Group]:
    """The rank's group along each axis of an array of that shape, last (fastest) axis first.

    Made once per shape and group. ValueError unless the axes multiply to the size of the group.
    """
    shape, total = tuple(shape), 1
    for length in shape:
        total *= length
    if total != group.size or min(shape) < 1:
        raise ValueError(f"shape={shape}: its axes must multiply to {group.size} ranks")
    if shape not in group.axes:
        axes, stride = [], 1
        for length in reversed(shape):
            starts = [r for r in range(group.size) if r // stride % length == 0]
            axes.append(group.split([[s + i * stride for i in range(length)] for s in starts]))
            stride *= length
        group.axes[shape] = axes
    return group.axes[shape]


def _over_axes(x: torch.Tensor, axes: list[Group], op: str) -> torch.Tensor:
    check_tensor(x, axes[0], op)
    if len(axes) == 1:
        return ring_all_reduce(x, axes[0], op=op)
    chunks = list(x.view(-1).tensor_split(axes[0].size))
    mine = chunks[axes[0].rank]
    copy_into(mine, ring_reduce_scatter(chunks, axes[0], op), axes[0])
    _over_axes(mine, axes[1:], op)
    pass_around([[chunk] for chunk in chunks], axes[0])
    return x


def _fold(x: torch.Tensor, group: Group, op: str):
    """Make W a power of two: of the first 2(W - size) ranks, odd ones add theirs to the one before.

    Returns the rank's place among those that go on (None for the others), their number, and a
    function from a place to a rank.
    """
    size = 1 << group.size.bit_length() - 1
    surplus = group.size - size
    if group.rank >= 2 * surplus:
        place = group.rank - surplus
    elif group.rank % 2:
        group.send(x, group.rank - 1)
        place = None
    else:
        add_into(x, group.recv(scratch(x, group), group.rank + 1), group, op)
        place = group.rank // 2
    return place, size, lambda p: 2 * p if p < surplus else p + surplus


def _unfold(x: torch.Tensor, group: Group, place: int | None) -> torch.Tensor:
    """Give the result to the ranks that `_fold` left out."""
    surplus = group.size - (1 << group.size.bit_length() - 1)
    if group.rank < 2 * surplus:
        if place is None:
            group.recv(x, group.rank - 1)
        else:
            group.send(x, group.rank + 1)
    return x
