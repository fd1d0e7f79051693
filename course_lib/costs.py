"""Closed forms: what a collective or a training state costs, in bytes, steps and seconds. No torch.

n is the size of the vector in bytes, W = `world_size` the number of ranks of the group, `latency`
the seconds per message, `bandwidth` the bytes per second of a port, one way, and `gamma` the
seconds per byte added (a machine's gamma is per element: divide by the bytes of an element). Each
rank has one port per direction. `replay` on such a machine gives the same seconds.

Bytes count payload, sent or received by one rank. They are exact when W divides n; where it does
not, the docstring says which ranks carry more. A form returns a float unless it counts steps.

Sources: [MPICH] header comments of pmodels/mpich, src/mpi/coll; [NT] NVIDIA/nccl-tests,
doc/PERFORMANCE.md; [ZeRO] Rajbhandari and others, arXiv 1910.02054, section 5. Everything raises
ValueError for a size or rate that makes no sense.
"""

from __future__ import annotations

BUS_FACTORS = {  # of nccl-tests, for W ranks
    "all_reduce": lambda W: 2 * (W - 1) / W,
    "reduce_scatter": lambda W: (W - 1) / W,
    "all_gather": lambda W: (W - 1) / W,
    "all_to_all": lambda W: (W - 1) / W,
    "broadcast": lambda W: 1.0,
    "reduce": lambda W: 1.0,
}


def barrier_steps(world_size: int) -> int:
    """Steps of a dissemination barrier, ceil(log2 W): each sends one byte and receives one."""
    _check(world_size=world_size)
    return (world_size - 1).bit_length()


def barrier_seconds(world_size: int, latency: float, bandwidth: float) -> float:
    """A dissemination barrier whose ranks all come at once (Hensgen, Finkel and Manber 1988)."""
    _check(world_size=world_size, latency=latency, bandwidth=bandwidth)
    return barrier_steps(world_size) * (latency + 1 / bandwidth)


def broadcast_bytes(n: float, world_size: int) -> float:
    """Bytes that the root of a flat broadcast sends: the whole vector to each other rank."""
    _check(n=n, world_size=world_size)
    return float((world_size - 1) * n)


def broadcast_seconds(n: float, world_size: int, latency: float, bandwidth: float) -> float:
    """A flat broadcast: the root's one out-port sends W - 1 messages, one after another."""
    _check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth)
    return (world_size - 1) * (latency + n / bandwidth)


def naive_all_reduce_bytes(n: float, world_size: int, rank: int, root: int = 0) -> float:
    """Bytes that `rank` sends when the root collects all vectors and sends the sum back.

    The root sends (W - 1) n and every other rank n. Each receives as much as it sends.
    """
    _check(n=n, world_size=world_size)
    for name, value in (("rank", rank), ("root", root)):
        if not 0 <= value < world_size:
            raise ValueError(f"{name}={value}: must be in 0..{world_size - 1}")
    return float((world_size - 1) * n if rank == root else min(1, world_size - 1) * n)


def naive_all_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                             gamma: float = 0.0) -> float:
    """Naive all-reduce: the root receives, adds, receives, adds ..., then sends W - 1 times."""
    _check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    return (world_size - 1) * (2 * (latency + n / bandwidth) + gamma * n)


def ring_all_reduce_steps(world_size: int) -> int:
    """Steps of a ring all-reduce: W - 1 of the reduce-scatter and W - 1 of the all-gather."""
    _check(world_size=world_size)
    return 2 * (world_size - 1)


def ring_all_reduce_bytes(n: float, world_size: int) -> float:
    """Bytes that each rank sends, and receives, in a ring all-reduce: 2 (W - 1) / W * n. [NT]

    When W does not divide the vector, chunks differ by one element. Every rank sends each chunk
    twice except for two neighbouring ones that it sends once: 2 n less the size of those two. The
    mean over the ranks is the formula still.
    """
    _check(n=n, world_size=world_size)
    return 2 * (world_size - 1) * n / world_size


def ring_all_reduce_seconds(n: float, world_size: int, latency: float, bandwidth: float,
                            segments: int = 1, gamma: float = 0.0) -> float:
    """Ring all-reduce: 2 (W - 1) steps, each a chunk of n / W bytes in `segments` messages.

    2 (W - 1) (k latency + n / (W bandwidth)) + (W - 1) gamma n / W for k segments, each received
    and added before the next: the sum of MPICH's ring all-gather and the reduce-scatter of the
    same steps [MPICH].
    """
    _check(n=n, world_size=world_size, latency=latency, bandwidth=bandwidth, gamma=gamma)
    if not isinstance(segments, int) or segments < 1:
        raise ValueError(f"segments={segments}: must be an integer of at least 1")
    chunk = n / world_size
    step = segments * latency + chunk / bandwidth
    return (world_size - 1) * (2 * step + gamma * chunk)


def bus_bandwidth(op: str, n: float, world_size: int, seconds: float) -> float:
    """Bytes per second by the convention of nccl-tests: n / seconds times a factor of the op. [NT]

    The factor makes the figure that of the wire, whatever W: 2 (W - 1) / W for an all-reduce,
    (W - 1) / W for reduce-scatter, all-gather and all-to-all (n the total size), 1 for broadcast
    and reduce.
    """
    _check(n=n, world_size=world_size)
    if op not in BUS_FACTORS:
        raise ValueError(f"op={op!r}: must be one of {', '.join(BUS_FACTORS)}")
    if not seconds > 0:
        raise ValueError(f"seconds={seconds}: must be above 0")
    return n / seconds * BUS_FACTORS[op](world_size)


def zero_memory_bytes(psi: float, world_size: int, stage: int) -> float:
    """Bytes of model state per rank for `psi` parameters trained by Adam in mixed precision. [ZeRO]

    2 psi weights and 2 psi gradients in 16 bits, 12 psi optimizer state in 32 (master weights,
    momentum, variance). Stage 0 replicates all 16 psi; stage 1 shards the optimizer state over W
    ranks, 2 the gradients too, 3 the weights too. Activations and buffers come on top.
    """
    _check(n=psi, world_size=world_size, names={"n": "psi"})
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"stage={stage}: must be 0, 1, 2 or 3")
    replicated = (16, 4, 2, 0)[stage]
    return replicated * psi + (16 - replicated) * psi / world_size


def _check(names: dict[str, str] | None = None, **values: float) -> None:
    """ValueError for the first argument outside its range."""
    for key, value in values.items():
        name = (names or {}).get(key, key)
        if key == "world_size" and (not isinstance(value, int) or value < 1):
            raise ValueError(f"world_size={value}: must be an integer of at least 1")
        if key == "bandwidth" and not value > 0:
            raise ValueError(f"bandwidth={value}: must be above 0")
        if not value >= 0:
            raise ValueError(f"{name}={value}: must be at least 0")
