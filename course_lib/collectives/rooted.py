"""One to many and many to one: broadcast, scatter, gather, reduce (contracts: the package)."""

from __future__ import annotations

import torch

from ..calls import add_into, collective, copy_of, scratch
from ..group import Group
from ..shapes import empty, share_shapes
from .checked import check_parts, check_root, check_tensor, divide


@collective("shape", "root")
def broadcast(x: torch.Tensor, group: Group, root: int = 0) -> torch.Tensor:
    """After: x of every rank equals the root's x (changed in place off the root).

    Cost: the root sends n bytes to each of the W-1 others, one after the other.
    """
    check_tensor(x, group, root=root)
    if group.rank == root:
        for to in range(group.size):
            if to != root:
                group.send(x, to)
    else:
        group.recv(x, root)
    return x


@collective("shape", "root")
def tree_broadcast(x: torch.Tensor, group: Group, root: int = 0) -> torch.Tensor:
    """After: as broadcast. In step k, the 2^k ranks that have x send it to 2^k that have not.

    Cost: ceil(log2 W) steps of n bytes; the root sends ceil(log2 W) n (binomial tree, as MPICH's).
    """
    check_tensor(x, group, root=root)
    W, place = group.size, (group.rank - root) % group.size
    distance = 1
    while distance < W:
        if place < distance and place + distance < W:
            group.send(x, (group.rank + distance) % W)
        elif distance <= place < 2 * distance:
            group.recv(x, (group.rank - distance) % W)
        distance *= 2
    return x


@collective("root")
def scatter(parts: list[torch.Tensor] | None, group: Group, root: int = 0) -> torch.Tensor:
    """After: rank r holds part r of the root's list; the others pass None (or anything).

    Cost: the root sends each part but its own, in W-1 steps.
    """
    check_root(root, group)
    at_root = group.rank == root
    parts = check_parts(parts, group) if at_root else []
    specs = share_shapes(parts, group, of=[root])[root]
    if not at_root:
        return group.recv(empty(specs[group.rank], group), root)
    for to in range(group.size):
        if to != root:
            group.send(parts[to], to)
    return copy_of(parts[root], group)


@collective("root")
def gather(x: torch.Tensor, group: Group, root: int = 0) -> list[torch.Tensor] | None:
    """After: the root holds the list of all ranks' x; the others get None.

    Cost: the root receives each x but its own, in W-1 steps; the others send n bytes.
    """
    check_root(root, group)
    specs = share_shapes([x], group, of=None if group.rank == root else [])
    if group.rank != root:
        return group.send(x, root)
    return [copy_of(x, group) if frm == root else group.recv(empty(specs[frm][0], group), frm)
            for frm in range(group.size)]


@collective("shape", "op", "root")
def reduce(x: torch.Tensor, group: Group, root: int = 0, op: str = "sum") -> torch.Tensor:
    """After: x of the root (changed in place) is the sum over ranks; the others' x is as before.

    Cost: the root receives n bytes from each of the W-1 others, one after the other.
    """
    check_tensor(x, group, op, root)
    if group.rank != root:
        group.send(x, root)
        return x
    incoming = scratch(x, group)
    for frm in range(group.size):
        if frm != root:
            add_into(x, group.recv(incoming, frm), group, op)
    return divide(x, group, op)


@collective("shape", "op", "root")
def tree_reduce(x: torch.Tensor, group: Group, root: int = 0, op: str = "sum") -> torch.Tensor:
    """After: as reduce. The binomial tree of tree_broadcast, run backwards: in each step half of
    the ranks that still hold a partial sum send it on.

    Cost: ceil(log2 W) steps of n bytes; no rank receives more than ceil(log2 W) n.
    """
    check_tensor(x, group, op, root)
    W, place = group.size, (group.rank - root) % group.size
    partial = x if place == 0 else group.hold(copy_of(x, group), "buffer")
    distance = 1 << max(0, (W - 1).bit_length() - 1)
    while distance:
        if place < distance and place + distance < W:
            incoming = group.recv(scratch(x, group), (group.rank + distance) % W)
            add_into(partial, incoming, group, op)
        elif distance <= place < 2 * distance:
            group.send(partial, (group.rank - distance) % W)
        distance //= 2
    return divide(x, group, op) if place == 0 else x
