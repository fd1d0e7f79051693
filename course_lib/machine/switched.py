"""Nodes of GPUs behind NVSwitch, joined rail by rail through leaf and spine switches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .model import Level, Machine, Route, both_ways, check_whole, node, rank_node

GPUS_PER_NODE = 8
# NCCL's ring, protocol Simple, seconds per hop: src/graph/tuning.cc (01afd20a, of 2021)
NVLINK_LATENCY, NET_LATENCY = 3.4e-6, 9.6e-6


@dataclass(frozen=True)
class SwitchedNodes(Machine):
    """Nodes of GPUs behind NVSwitch; a GPU has one NVLink port and one NIC, each in and out.

    Inside a node any GPU reaches any other at full NVLink speed (`latency`, `bandwidth`). Between
    nodes a message leaves by the sender's NIC and enters by the receiver's (`nic_latency`,
    `nic_bandwidth`). Rank r is GPU r % gpus_per_node of its node; NIC i of a node is on rail i.

    `leaf_nodes` nodes are one unit: there a leaf switch joins the NICs of one rail. A message to
    another rail or another unit goes up to the spine and down again. A leaf has as many wires to
    the spine as to nodes (full bisection), and each NIC has its own, so only ports are contended;
    the spine is one switch that never collides, and costs no extra latency (no figure is known).
    With leaf_nodes=None all NICs are on one switch. `unit_name` is what the constructor counts.
    """

    gpus_per_node: int = GPUS_PER_NODE
    nic_latency: float = 0.0
    nic_bandwidth: float = math.inf
    leaf_nodes: int | None = None
    unit_name: str = "nodes"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("gpus_per_node", self.gpus_per_node)
        if self.leaf_nodes is not None:
            check_whole("leaf_nodes", self.leaf_nodes)

    def ports(self, rank: int) -> tuple[str, ...]:
        """NVLink and NIC, out and in."""
        return tuple(f"rank {rank} {kind} {way}" for way in ("out", "in")
                     for kind in ("NVLink", f"NIC {rank % self.gpus_per_node}"))

    def route(self, src: int, dst: int) -> Route:
        """NVLink to NVLink inside a node, NIC to NIC between nodes."""
        self._check_pair(src, dst)
        nvlink_out, nic_out = self.ports(src)[:2]
        nvlink_in, nic_in = self.ports(dst)[2:]
        if src // self.gpus_per_node == dst // self.gpus_per_node:
            return Route(nvlink_out, nvlink_in, (), self.latency, self.bandwidth)
        above = ()
        if self.leaf_nodes is not None and self._leaf(src) != self._leaf(dst):
            above = (self._spine_wires(src)[0], self._spine_wires(dst)[1])
        return Route(nic_out, nic_in, above, self.nic_latency, self.nic_bandwidth)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Node, unit under one set of leaf switches, everything under the spine."""
        levels = [Level("NVLink", self.gpus_per_node, self.latency, self.bandwidth)]
        unit = (self.leaf_nodes or 0) * self.gpus_per_node
        if self.gpus_per_node < self.max_ranks and unit:
            levels.append(Level("leaf", min(unit, self.max_ranks), self.nic_latency,
                                self.nic_bandwidth))
        if max(unit, self.gpus_per_node) < self.max_ranks:
            levels.append(Level("spine" if unit else "network", self.max_ranks, self.nic_latency,
                                self.nic_bandwidth))
        return tuple(levels)

    def check_world_size(self, world_size: int) -> None:
        """ValueError when there are more ranks than GPUs."""
        if world_size > self.max_ranks:
            enough = -(-world_size // self.gpus_per_node)
            raise ValueError(f"world_size={world_size}: {self.name} has {self.max_ranks} GPUs, "
                             f"one a rank; {self.unit_name}={enough} has enough")

    def graph(self, world_size: int | None = None) -> dict:
        """GPUs, the NVSwitch of each node, leaf switches and spine. See `Machine.graph`."""
        ranks, per_node = self._ranks_to_draw(world_size), self.gpus_per_node
        networked, nodes, links = ranks > per_node, [], []
        for r in range(ranks):
            n, (nvlink_out, nic_out, nvlink_in, nic_in) = r // per_node, self.ports(r)
            nodes.append(rank_node(r, f"GPU {r % per_node}", "gpu", r + n, 0))
            links += both_ways(nvlink_out, nvlink_in, f"rank {r}", f"node {n} NVSwitch",
                               self.bandwidth, "NVLink")
            if networked:
                links += both_ways(nic_out, nic_in, f"rank {r}", self._leaf(r),
                                   self.nic_bandwidth, "NIC")
        for n in range(ranks // per_node):
            middle = n * (per_node + 1) + (per_node - 1) / 2
            nodes.append(node(f"node {n} NVSwitch", f"node {n}", "nvswitch", 1, middle, 1))
        if networked:
            self._draw_network(ranks, nodes, links)
        return {"nodes": nodes, "links": links}

    def _draw_network(self, ranks: int, nodes: list, links: list) -> None:
        width = ranks + ranks // self.gpus_per_node - 2
        if self.leaf_nodes is None:
            nodes.append(node("network", "network", "network", 2, width / 2, 2))
            return
        leaves = list(dict.fromkeys(map(self._leaf, range(ranks))))
        for i, leaf in enumerate(leaves):
            x = width * (i + 0.5) / len(leaves)
            nodes.append(node(leaf, f"leaf, rail {i % self.gpus_per_node}", "leaf", 2, x, 2))
        nodes.append(node("spine", "spine", "spine", 3, width / 2, 3))
        for r in range(ranks):
            links += both_ways(*self._spine_wires(r), self._leaf(r), "spine", self.nic_bandwidth,
                               "spine")

    def _leaf(self, rank: int) -> str:
        """The switch that the rank's NIC is on."""
        if self.leaf_nodes is None:
            return "network"
        return (f"unit {rank // self.gpus_per_node // self.leaf_nodes} "
                f"leaf {rank % self.gpus_per_node}")

    def _spine_wires(self, rank: int) -> tuple[str, str]:
        """The wires between the spine and the rank's leaf that carry its messages, up and down."""
        wire = rank // self.gpus_per_node % self.leaf_nodes
        return f"{self._leaf(rank)} up {wire}", f"{self._leaf(rank)} down {wire}"


def dgx_a100(nodes: int = 1) -> SwitchedNodes:
    """`nodes` DGX A100 on 200 Gb/s InfiniBand: 8 GPUs each, ranks 0..8 * nodes - 1.

    ===============  =============  =============================================================
    NVLink of a GPU  300 GB/s       12 links of NVLink 3, one way [1, 2]
    NIC of a GPU     25 GB/s        200 Gb/s HDR, one way, eight a node [4]
    arithmetic       312 TFLOP/s    bf16, dense [1, 2]
    HBM              2.0 TB/s       80 GB [1, 2]
    latency          3.4, 9.6 us    NVLink and NIC, as in `dgx_h100` [3]
    ===============  =============  =============================================================

    [1, 2, 3] as in `dgx_h100`. [4] Narayanan and others, arXiv 2104.04473. The network is one
    switch (no figure for its leaves). ValueError when `nodes` is not an integer of at least 1.
    """
    return _nodes("DGX A100", nodes, bandwidth=300e9, nic_bandwidth=25e9, flops=312e12,
                  memory_bandwidth=2.0e12, memory_bytes=80e9)


def dgx_h100(nodes: int = 1, leaf_nodes: int = 32) -> SwitchedNodes:
    """`nodes` DGX H100 on 400 Gb/s InfiniBand: 8 GPUs each, ranks 0..8 * nodes - 1.

    ===============  =============  =============================================================
    NVLink of a GPU  450 GB/s       18 links of NVLink 4, one way [1, 2]
    NIC of a GPU     50 GB/s        400 Gb/s NDR, one way, one for each GPU [1, 2]
    leaf switches    32 nodes       256 GPUs are a unit: 8 leaves, one a rail; a spine above [1]
    arithmetic       989 TFLOP/s    bf16, dense [1, 2]
    HBM              3.35 TB/s      80 GB [1, 2]
    latency, NVLink  3.4 us         NCCL's ring, protocol Simple, per hop [3]
    latency, NIC     9.6 us         the same, "NET" [3]
    ===============  =============  =============================================================

    [1] jax-ml/scaling-book, gpus.md. [2] stas00/ml-engineering, compute/accelerator/README.md and
    network/README.md. [3] NVIDIA/nccl, src/graph/tuning.cc (01afd20a, of 2021).

    The Simple protocol is the one that reaches full bandwidth; NCCL sends small messages by LL
    (0.47 and 2.7 us, at a fraction of the bandwidth), so small messages are charged too much here.
    Every computation is charged at the bf16 peak, whatever its dtype. Switches add nothing up (no
    SHARP). ValueError when `nodes` or `leaf_nodes` is not an integer of at least 1.
    """
    check_whole("leaf_nodes", leaf_nodes)
    return _nodes("DGX H100", nodes, bandwidth=450e9, nic_bandwidth=50e9, flops=989e12,
                  memory_bandwidth=3.35e12, memory_bytes=80e9, leaf_nodes=leaf_nodes)


def dgx_b200(nodes: int = 1) -> SwitchedNodes:
    """`nodes` nodes of 8 B200 GPUs, a 400 Gb/s NIC each: ranks 0..8 * nodes - 1.

    900 GB/s of NVLink 5 (18 links, one way), 50 GB/s a NIC, 2,250 TFLOP/s in bf16, 8.0 TB/s and
    192 GB of HBM (the first source of `dgx_h100`; its second says 180 GB). Sources and latencies as
    in `dgx_h100`. The network is one switch. ValueError as in `dgx_a100`.
    """
    return _nodes("DGX B200", nodes, bandwidth=900e9, nic_bandwidth=50e9, flops=2250e12,
                  memory_bandwidth=8.0e12, memory_bytes=192e9)


def nvl72(racks: int = 1) -> SwitchedNodes:
    """`racks` GB200 NVL72: 72 B200 GPUs behind NVSwitch each, ranks 0..72 * racks - 1.

    Figures of a GPU as in `dgx_b200`. Out of a rack go 3,600 GB/s one way, which is a 50 GB/s NIC a
    GPU (jax-ml/scaling-book, gpus.md). ValueError when `racks` is not an integer of at least 1.
    """
    check_whole("racks", racks)
    return _nodes("GB200 NVL72", racks, gpus_per_node=72, unit_name="racks", bandwidth=900e9,
                  nic_bandwidth=3600e9 / 72, flops=2250e12, memory_bandwidth=8.0e12,
                  memory_bytes=192e9)


def _nodes(name: str, nodes: int, gpus_per_node: int = GPUS_PER_NODE, **rates) -> SwitchedNodes:
    check_whole("nodes", nodes)
    return SwitchedNodes(name if nodes == 1 else f"{nodes} x {name}", latency=NVLINK_LATENCY,
                         nic_latency=NET_LATENCY, max_ranks=gpus_per_node * nodes,
                         gpus_per_node=gpus_per_node, **rates)
