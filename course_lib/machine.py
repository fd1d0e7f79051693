"""Machine models: the ports of each rank, the links between ranks, and how fast a rank computes.

A `Machine` answers two questions that `replay` asks: which resources a message from one rank to
another occupies and for how long (`route`), and how long a computation takes (`compute_seconds`).
A port or a link carries one message at a time, so contention is what the resource names say it is:
two routes that share a name share a wire.

`Machine` itself is the uniform machine: one out-port and one in-port per rank, every pair joined
alike. Another topology is a subclass with its own `ports` and `route`; `replay` needs nothing
else. Variants of a machine are made by `dataclasses.replace(machine, gamma=...)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

GPUS_PER_NODE = 8


@dataclass(frozen=True)
class Route:
    """What one message from a rank to another occupies.

    Names of ports and links are readable, and unique in the machine. `bandwidth` (bytes per second)
    is that of the slowest part of the way; `latency` is in seconds.
    """

    out_port: str
    in_port: str
    links: tuple[str, ...]
    latency: float
    bandwidth: float

    @property
    def resources(self) -> tuple[str, ...]:
        """Everything that must be free before the message starts."""
        return (self.out_port, self.in_port, *self.links)

    def seconds(self, nbytes: int) -> float:
        """Seconds from the start to the end of one message of `nbytes` bytes."""
        return self.latency + nbytes / self.bandwidth


@dataclass(frozen=True)
class Machine:
    """A machine on which all pairs of ranks are joined alike, with one port per rank and direction.

    latency: seconds per message. bandwidth: bytes per second of a port, one way. flops: peak
    FLOP/s of a rank. memory_bandwidth: bytes per second between a rank and its memory. gamma:
    seconds per element added inside a collective (computations labelled "add"); None charges them
    like any other computation. max_ranks: None for as many as a trace has. A bandwidth or peak may
    be `math.inf`: free.
    """

    name: str
    latency: float
    bandwidth: float
    flops: float
    memory_bandwidth: float
    gamma: float | None = None
    max_ranks: int | None = None

    def __post_init__(self) -> None:
        for field in (f.name for f in fields(self)):
            value = getattr(self, field)
            if field.endswith(("bandwidth", "flops")) and not value > 0:
                raise ValueError(f"{field}={value}: must be above 0")
            costs = field.endswith(("latency", "gamma")) and value is not None
            if costs and not 0 <= value < math.inf:
                raise ValueError(f"{field}={value}: must be at least 0 and finite")

    def ports(self, rank: int) -> tuple[str, ...]:
        """Names of the rank's ports, out-ports first."""
        return (f"rank {rank} out", f"rank {rank} in")

    def route(self, src: int, dst: int) -> Route:
        """What a message from rank `src` to rank `dst` occupies. ValueError for a bad pair."""
        self._check_pair(src, dst)
        return Route(f"rank {src} out", f"rank {dst} in", (), self.latency, self.bandwidth)

    def compute_seconds(self, flops: int, nbytes: int = 0, label: str = "") -> float:
        """Seconds of a computation: the longer of its arithmetic and its memory traffic.

        `nbytes` are read or written. The model is the roofline of Williams and others, 2009.
        """
        if label == "add" and self.gamma is not None:
            return self.gamma * flops
        return max(flops / self.flops, nbytes / self.memory_bandwidth)

    def check_world_size(self, world_size: int) -> None:
        """ValueError when the machine has fewer places than `world_size` ranks."""
        if self.max_ranks is not None and world_size > self.max_ranks:
            raise ValueError(f"world_size={world_size}: {self.name} has {self.max_ranks} ranks")

    def _check_pair(self, src: int, dst: int) -> None:
        for name, rank in (("src", src), ("dst", dst)):
            if rank < 0 or (self.max_ranks is not None and rank >= self.max_ranks):
                limit = "" if self.max_ranks is None else f", below {self.max_ranks}"
                raise ValueError(f"{name}={rank}: must be at least 0{limit} on {self.name}")
        if src == dst:
            raise ValueError(f"dst={dst}: a rank sends no message to itself")


def unit(latency: float = 0.0, bandwidth: float = 1.0) -> Machine:
    """The machine of hand calculations: one second a byte sent, one second a FLOP.

    Messages have no latency, additions inside collectives and memory traffic are free, and a
    computation with given `seconds` takes those. Any number of ranks, one out-port and one in-port
    each.
    """
    return Machine("unit", latency, bandwidth, flops=1.0, memory_bandwidth=math.inf, gamma=0.0)


def laptop() -> Machine:
    """Ranks that are processes of one laptop and talk through its loopback network.

    Fixed round figures: 60 us a message and 2 GB/s between two processes (gloo over TCP: ping-pong
    and 4 MB all-reduce of two ranks, measured on a 2-core Linux machine with torch 2.13);
    50 GFLOP/s and 10 GB/s of memory per rank (about one core in fp32). Ranks that share a core slow
    each other down; the model gives each its own, so with more ranks than cores it is optimistic.
    """
    return Machine("laptop", latency=60e-6, bandwidth=2e9, flops=50e9, memory_bandwidth=10e9)


@dataclass(frozen=True)
class NvlinkNodes(Machine):
    """Nodes of 8 GPUs behind NVSwitch; a GPU has one NVLink port and one NIC, each in and out.

    Inside a node any GPU reaches any other at full NVLink speed (`latency`, `bandwidth`). Between
    nodes a message leaves by the sender's NIC and enters by the receiver's (`nic_latency`,
    `nic_bandwidth`). NIC i of every node is on rail i, one leaf switch; a message between rails
    crosses the spine. The network has full bisection bandwidth, so only ports are contended, and
    no extra latency is charged for the spine. Rank r is GPU r % 8 of node r // 8, on rail r % 8.
    """

    nic_latency: float = 0.0
    nic_bandwidth: float = math.inf

    def ports(self, rank: int) -> tuple[str, ...]:
        """NVLink and NIC, out and in."""
        return tuple(f"rank {rank} {kind} {way}" for way in ("out", "in")
                     for kind in ("NVLink", f"NIC {rank % GPUS_PER_NODE}"))

    def route(self, src: int, dst: int) -> Route:
        """NVLink to NVLink inside a node, NIC to NIC between nodes."""
        self._check_pair(src, dst)
        inside = src // GPUS_PER_NODE == dst // GPUS_PER_NODE
        nvlink_out, nic_out = self.ports(src)[:2]
        nvlink_in, nic_in = self.ports(dst)[2:]
        if inside:
            return Route(nvlink_out, nvlink_in, (), self.latency, self.bandwidth)
        return Route(nic_out, nic_in, (), self.nic_latency, self.nic_bandwidth)

    def check_world_size(self, world_size: int) -> None:
        """ValueError when there are more ranks than GPUs."""
        if world_size > self.max_ranks:
            raise ValueError(f"world_size={world_size}: {self.name} has {self.max_ranks} GPUs, "
                             f"one a rank; nodes={-(-world_size // GPUS_PER_NODE)} has enough")


def dgx_h100(nodes: int = 1) -> NvlinkNodes:
    """`nodes` DGX H100 on 400 Gb/s InfiniBand: 8 GPUs each, ranks 0..8 * nodes - 1.

    ===============  =============  =============================================================
    NVLink of a GPU  450 GB/s       18 links of NVLink 4, one way [1, 2]
    NIC of a GPU     50 GB/s        400 Gb/s NDR, one way, one for each GPU [1, 2]
    arithmetic       989 TFLOP/s    bf16, dense [1, 2]
    HBM              3.35 TB/s      [1, 2]
    latency, NVLink  3.4 us         NCCL's ring, protocol Simple, per hop [3]
    latency, NIC     9.6 us         the same, "NET" [3]
    ===============  =============  =============================================================

    [1] jax-ml/scaling-book, gpus.md. [2] stas00/ml-engineering, compute/accelerator/README.md and
    network/README.md. [3] NVIDIA/nccl, src/graph/tuning.cc (01afd20a, of 2021).

    The Simple protocol is the one that reaches full bandwidth; NCCL sends small messages by LL
    (0.47 and 2.7 us, at a fraction of the bandwidth), so small messages are charged too much here.
    Every computation is charged at the bf16 peak, whatever its dtype. ValueError when `nodes` is
    not an integer of at least 1.
    """
    if not isinstance(nodes, int) or nodes < 1:
        raise ValueError(f"nodes={nodes}: must be an integer of at least 1")
    name = "DGX H100" if nodes == 1 else f"{nodes} x DGX H100"
    return NvlinkNodes(name, latency=3.4e-6, bandwidth=450e9, flops=989e12,
                       memory_bandwidth=3.35e12, max_ranks=GPUS_PER_NODE * nodes,
                       nic_latency=9.6e-6, nic_bandwidth=50e9)
