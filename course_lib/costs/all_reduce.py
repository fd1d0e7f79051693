"""All-reduce, algorithm by algorithm. Symbols and sources: the package's docstring."""

from __future__ import annotations

from collections.abc import Sequence

from .checks import check, check_shape
from .collectives import tree_steps


def naive_all_reduce_bytes(n: float, world_size: int, rank: int, root: int = 0) -> float:
    """Bytes that `rank` sends when the root collects all vectors and sends the sum back.

    The root sends (W - 1) n and every other rank n. Each receives as much as it sends.
    """
    check(n=n, world_size=world_size)
    for name, value in (("rank", rank), ("root", root)):
        if not 0 <= value < world_size:
            raise ValueError(f"{name}={value}: must be in 0..{world_size - 1}")
    return float((world_size - 1) * n if rank == root else min(1, world_size - 1) * n)


def naive_all_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                             gamma: float = 0.0) -> float:
    """Naive all-reduce: the root receives, adds, receives, adds ..., then sends W - 1 times."""
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    return (world_size - 1) * (2 * (latency + n / bandwidth) + gamma * n)


def parameter_server_bytes(n: float, workers: int) -> float:
    """Bytes through the port of a server that is no worker itself: 2 N n, N n in and N n out.

    The sum is that of an all-reduce over the N workers. Seconds: naive_all_reduce_seconds of N + 1
    ranks, whose root brings nothing.
    """
    check(n=n, world_size=workers, names={"world_size": "workers"})
    return 2.0 * workers * n


def ring_all_reduce_steps(world_size: int) -> int:
    """Steps of a ring all-reduce: W - 1 of the reduce-scatter and W - 1 of the all-gather."""
    check(world_size=world_size)
    return 2 * (world_size - 1)


def ring_all_reduce_bytes(n: float, world_size: int) -> float:
    """Bytes that each rank sends, and receives, in a ring all-reduce: 2 (W - 1) / W * n. [NT]

    When W does not divide the vector, chunks differ by one element. Every rank sends each chunk
    twice except for two neighbouring ones that it sends once: 2 n less the size of those two. The
    mean over the ranks is the formula still.
    """
    check(n=n, world_size=world_size)
    return 2 * (world_size - 1) * n / world_size


def ring_all_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                            segments: int = 1, gamma: float = 0.0) -> float:
    """Ring all-reduce: 2 (W - 1) steps, each a chunk of n / W bytes in `segments` messages.

    2 (W - 1) (k latency + n / (W bandwidth)) + (W - 1) gamma n / W for k segments, each received
    and added before the next: the sum of MPICH's ring all-gather and the reduce-scatter of the
    same steps [MPICH].
    """
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma,
          segments=segments)
    chunk = n / world_size
    step = segments * latency + chunk / bandwidth
    return (world_size - 1) * (2 * step + gamma * chunk)


def tree_all_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                            gamma: float = 0.0) -> float:
    """Reduce along a binomial tree, then broadcast: 2 ceil(log2 W) steps of the whole vector."""
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    return tree_steps(world_size) * (2 * (latency + n / bandwidth) + gamma * n)


def recursive_doubling_all_reduce_seconds(n: float, world_size: int, latency: float,
                                          bandwidth: float, gamma: float = 0.0) -> float:
    """Recursive doubling: log2 W steps of the whole vector, each then added. [Thakur]

    Where W is not a power of two, the surplus ranks first hand over their vector and last receive
    the result: log2 P + 2 steps for the power of two P below W, all but the last with an addition.
    """
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    power, surplus = _fold(world_size)
    steps = power.bit_length() - 1
    return ((steps + 2 * surplus) * (latency + n / bandwidth) + (steps + surplus) * gamma * n)


def rabenseifner_all_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                                    gamma: float = 0.0, printed: bool = False) -> float:
    """Recursive halving, then doubling: 2 log2 W steps, 2 (W - 1) / W n bytes. [MPICH, Thakur]

    2 log2 W latency + (W - 1) / W n (2 / bandwidth + gamma). Where W is not a power of two, P the
    power below takes W's place, and the surplus ranks' two messages cost 2 (latency + n /
    bandwidth) + gamma n more: what the steps take. MPICH's comment has (W - 1) / W there too, which
    is a little more; printed: that form.
    """
    check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    power, surplus = _fold(world_size)
    parts = world_size if printed else power
    steps, share = 2 * (power.bit_length() - 1), (parts - 1) / parts * n
    folded = surplus * (2 * (latency + n / bandwidth) + gamma * n)
    return steps * latency + share * (2 / bandwidth + gamma) + folded


def hierarchical_all_reduce_bytes(n: float, inner: int, outer: int) -> tuple[float, float]:
    """Bytes that each rank sends inside its node and between nodes. [STAS]

    2 (inner - 1) / inner n and 2 (outer - 1) / outer n / inner, for `outer` nodes of `inner` ranks.
    """
    check(n=n, inner=inner, outer=outer)
    return 2 * (inner - 1) * n / inner, 2 * (outer - 1) * n / inner / outer


def hierarchical_all_reduce_seconds(n: float, inner: int, outer: int, latency: float,
                                    bandwidth: float, outer_latency: float, outer_bandwidth: float,
                                    gamma: float = 0.0) -> float:
    """Reduce-scatter inside the node, a ring per rank between nodes, all-gather inside. [STAS]

    The phases do not overlap: ring_all_reduce_seconds of n on `inner` ranks at the node's rates,
    plus that of n / inner on `outer` ranks at the outer ones.
    """
    check(n=n, inner=inner, outer=outer, latency=latency, bandwidth=bandwidth,
          outer_latency=outer_latency, outer_bandwidth=outer_bandwidth, gamma=gamma)
    return (ring_all_reduce_seconds(n, inner, latency, bandwidth, gamma=gamma)
            + ring_all_reduce_seconds(n / inner, outer, outer_latency, outer_bandwidth,
                                      gamma=gamma))


def torus_all_reduce_bytes(n: float, shape: Sequence[int]) -> float:
    """Bytes that each rank sends: 2 (1 - 1 / W) n, as in one ring of W, whatever the shape."""
    check(n=n)
    sent = 0.0
    for size in check_shape(shape):
        sent, n = sent + ring_all_reduce_bytes(n, size), n / size
    return sent


def torus_all_reduce_seconds(n: float, shape: Sequence[int], latency: float, bandwidth: float,
                             gamma: float = 0.0) -> float:
    """All-reduce axis by axis on a torus, one direction at a time: rings of the axes' sizes.

    Reduce-scatter on the first axis worked on, then of the own part on the next, all-gathers in
    reverse: on X x Y, (2 (X - 1) + 2 (Y - 1)) latency + 2 n ((X - 1) / X + (Y - 1) / (X Y)) /
    bandwidth. Which axis comes first makes no difference.
    """
    check(n=n, latency=latency, bandwidth=bandwidth, gamma=gamma)
    seconds = 0.0
    for size in check_shape(shape):
        seconds += ring_all_reduce_seconds(n, size, latency, bandwidth, gamma=gamma)
        n = n / size
    return seconds


def rail_rings_all_reduce_seconds(n: float, gpus: int, nodes: int, latency: float,
                                  bandwidth: float, nic_latency: float, nic_bandwidth: float
                                  ) -> float:
    """One ring over all ranks per rail, all at once, each with n / gpus and a NIC of its own.

    In each of the 2 (W - 1) steps, W = gpus * nodes, a GPU sends a chunk of n / (gpus W) by NIC for
    one ring and by NVLink, one after another, for the others; the slower of the two decides. With
    one node all are sent by NVLink. It is how NCCL's rings use all NICs of a node; additions are
    taken as hidden behind the transfers.
    """
    check(n=n, gpus=gpus, nodes=nodes, latency=latency, bandwidth=bandwidth,
          nic_latency=nic_latency, nic_bandwidth=nic_bandwidth)
    world_size = gpus * nodes
    chunk = n / gpus / world_size
    by_nvlink = latency + chunk / bandwidth
    step = gpus * by_nvlink
    if nodes > 1:
        step = max((gpus - 1) * by_nvlink, nic_latency + chunk / nic_bandwidth)
    return 2 * (world_size - 1) * step


def _fold(world_size: int) -> tuple[int, int]:
    """The largest power of two that is at most W, and 1 if ranks are left over, else 0."""
    power = 1 << (world_size.bit_length() - 1)
    return power, int(power < world_size)
