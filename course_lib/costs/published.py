"""Forms that others publish for collectives that the course does not run. Symbols: the package.

n is the whole vector in bytes: what a broadcast or reduce has, an all-gather ends with, a
reduce-scatter starts from. Where MPICH's lg W is no whole number, its trees take ceil(log2 W)
steps, while its halving forms are those of powers of two.
"""

from __future__ import annotations

from collections.abc import Sequence

from .checks import check, check_shape
from .collectives import all_gather_seconds, tree_steps

HOP = 1e-6  # seconds from a TPU to its neighbour


def halving_reduce_scatter_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                                   gamma: float = 0.0) -> float:
    """Reduce-scatter by recursive halving: lg W latency + (W-1)/W n (1/bandwidth + gamma). [MPICH]
    """
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    if world_size & (world_size - 1):
        raise ValueError(f"world_size={world_size}: must be a power of two")
    share = (world_size - 1) / world_size * n
    return tree_steps(world_size) * latency + share * (1 / bandwidth + gamma)


def bruck_all_gather_seconds(n: float, world_size: int, latency: float, bandwidth: float) -> float:
    """All-gather by Bruck's algorithm, or recursive doubling: lg W latency + (W-1)/W n / bandwidth.
    [MPICH]
    """
    return tree_scatter_seconds(n, world_size, latency, bandwidth)


def tree_scatter_seconds(n: float, world_size: int, latency: float, bandwidth: float) -> float:
    """Scatter along a binomial tree: lg W latency + (W-1)/W n / bandwidth. [MPICH]"""
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth)
    return tree_steps(world_size) * latency + (world_size - 1) / world_size * n / bandwidth


def scattered_broadcast_seconds(n: float, world_size: int, latency: float,
                                bandwidth: float) -> float:
    """Broadcast of a long vector: binomial scatter, then ring all-gather. [MPICH]

    (lg W + W - 1) latency + 2 (W-1)/W n / bandwidth.
    """
    return (tree_scatter_seconds(n, world_size, latency, bandwidth)
            + all_gather_seconds(n, world_size, latency, bandwidth))


def rabenseifner_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                                gamma: float = 0.0) -> float:
    """Reduce of a long vector: reduce-scatter by halving, then a binomial gather. [MPICH]

    2 lg W latency + (W-1)/W n (2 / bandwidth + gamma).
    """
    return (halving_reduce_scatter_seconds(n, world_size, latency, bandwidth, gamma)
            + tree_scatter_seconds(n, world_size, latency, bandwidth))


def nccl_ring_latency_seconds(gpus: int, nodes: int, latency: float, nic_latency: float,
                              base: float = 0.0) -> float:
    """What NCCL expects a ring all-reduce of nothing to take, W = gpus * nodes. [NCCL]

    (2 (W-1) - 2 (nodes-1)) latency + 2 (nodes-1) nic_latency, and `base` once.
    """
    check(gpus=gpus, nodes=nodes, latency=latency, nic_latency=nic_latency, base=base)
    return base + 2 * (gpus - 1) * nodes * latency + 2 * (nodes - 1) * nic_latency


def nccl_tree_latency_seconds(gpus: int, nodes: int, latency: float, nic_latency: float,
                              base: float = 0.0) -> float:
    """The same of its tree: 2 ((gpus-1) latency + lg nodes nic_latency), lg rounded down. [NCCL]"""
    check(gpus=gpus, nodes=nodes, latency=latency, nic_latency=nic_latency, base=base)
    return base + 2 * ((gpus - 1) * latency + (nodes.bit_length() - 1) * nic_latency)


def tpu_all_gather_seconds(n: float, shape: Sequence[int], bandwidth: float,
                           latency: float = HOP) -> float:
    """All-gather or reduce-scatter over the axes of a closed torus of TPUs. [SB]

    max(latency sum(X) / 2, n / (bandwidth axes)); `bandwidth` is an axis', both directions.
    """
    check(n=n, bandwidth=bandwidth, latency=latency)
    axes = [size for size in check_shape(shape) if size > 1]
    return max(latency * sum(axes) / 2, n / (bandwidth * len(axes))) if axes else 0.0


def switched_all_to_all_seconds(n: float, parts: int, bandwidth: float,
                                chosen: int | None = None) -> float:
    """All-to-all of n bytes on all GPUs together: n (N-1) / (N^2 bandwidth), latency left out. [SB]

    Inside an NVLink domain `parts` N is its GPUs and `bandwidth` a GPU's; over nodes, the number of
    nodes and a node's. chosen: every token goes to so many parts only, times min(chosen / N, 1).
    """
    check(n=n, parts=parts, bandwidth=bandwidth, chosen=parts if chosen is None else chosen)
    share = 1.0 if chosen is None else min(chosen / parts, 1.0)
    return n * (parts - 1) / parts**2 / bandwidth * share


def fat_tree_all_gather_seconds(n: float, levels: Sequence[tuple[int, float]]) -> float:
    """All-gather or reduce-scatter in a fat tree: n times the largest (D-1) / (D bandwidth). [SB]

    levels: (degree D, bandwidth of one child) from the GPUs upwards: 8 GPUs in a node, 32 nodes ...
    """
    for degree, bandwidth in levels:
        check(n=n, parts=degree, bandwidth=bandwidth, names={"parts": "degree"})
    return n * max(((degree - 1) / degree / bandwidth for degree, bandwidth in levels), default=0.0)
