"""Broadcast, reduce, gather, scatter, all-to-all. Symbols and sources: the package's docstring."""

from __future__ import annotations

from collections.abc import Sequence

from .checks import check, check_shape


def barrier_steps(world_size: int) -> int:
    """Steps of a dissemination barrier, ceil(log2 W): each sends one byte and receives one."""
    check(world_size=world_size)
    return (world_size - 1).bit_length()


def barrier_seconds(world_size: int, latency: float, bandwidth: float) -> float:
    """A dissemination barrier whose ranks all come at once (Hensgen, Finkel and Manber 1988)."""
    check(world_size=world_size, latency=latency, bandwidth=bandwidth)
    return barrier_steps(world_size) * (latency + 1 / bandwidth)


def broadcast_bytes(n: float, world_size: int) -> float:
    """Bytes that the root of a flat broadcast sends: the whole vector to each other rank."""
    check(n=n, world_size=world_size)
    return float((world_size - 1) * n)


def broadcast_seconds(n: float, world_size: int, latency: float, bandwidth: float) -> float:
    """A flat broadcast: the root's one out-port sends W - 1 messages, one after another."""
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth)
    return (world_size - 1) * (latency + n / bandwidth)


def tree_steps(world_size: int) -> int:
    """Steps of a binomial tree, ceil(log2 W): each doubles the ranks that have the vector."""
    check(world_size=world_size)
    return (world_size - 1).bit_length()


def tree_broadcast_seconds(n: float, world_size: int, latency: float, bandwidth: float) -> float:
    """Broadcast along a binomial tree: ceil(log2 W) (latency + n / bandwidth). [MPICH]"""
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth)
    return tree_steps(world_size) * (latency + n / bandwidth)


def tree_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                        gamma: float = 0.0) -> float:
    """The same tree towards the root, which adds after each of its ceil(log2 W) receives."""
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    return tree_steps(world_size) * (latency + n / bandwidth + gamma * n)


def reduce_scatter_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                           gamma: float = 0.0) -> float:
    """Reduce-scatter in a ring, n bytes in all parts: W - 1 steps of n / W, each then added.

    (W - 1) latency + (W - 1) / W n (1 / bandwidth + gamma): the steps of the ring all-gather
    [MPICH] and the bytes of [NT].
    """
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    part = n / world_size
    return (world_size - 1) * (latency + part / bandwidth + gamma * part)


def all_gather_seconds(n: float, world_size: int, latency: float, bandwidth: float) -> float:
    """All-gather in a ring, n bytes in all parts together: W - 1 steps of n / W. [MPICH]"""
    return reduce_scatter_seconds(n, world_size, latency, bandwidth)


def all_to_all_bytes(n: float, world_size: int) -> float:
    """Bytes that each rank sends when it has n, a part for every rank: all but its own part."""
    check(n=n, world_size=world_size)
    return (world_size - 1) * n / world_size


def all_to_all_seconds(n: float, world_size: int, latency: float, bandwidth: float) -> float:
    """All-to-all by pairwise exchange: W - 1 steps of n / W bytes. [MPICH]

    n is what a rank has, its own part included; MPICH's n is what it sends.
    """
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth)
    return (world_size - 1) * (latency + n / world_size / bandwidth)


def torus_all_to_all_bound_seconds(n: float, shape: Sequence[int], bandwidth: float) -> float:
    """What no all-to-all on a closed torus can be faster than: the wires' load, latency left out.

    A message crosses, on an axis of X chips, (X^2 // 4) / X wires on average; the mean load of the
    2 wires of a chip on that axis is n / 2 times that. The longest axis decides: X even, n X / 8
    over the bandwidth of a wire. It grows with the torus, where a switch has n / bandwidth.
    On one axis it is a quarter of the all-gather of the same n W bytes in both directions. [SB]
    """
    check(n=n, bandwidth=bandwidth)
    longest = max(check_shape(shape))
    return n * (longest**2 // 4) / longest / 2 / bandwidth
