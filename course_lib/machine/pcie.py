"""Servers whose GPUs share PCI Express, and one network adapter."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .model import Level, Machine, Route, both_ways, check_whole, node, rank_node

GPUS_PER_SERVER = 8
GPUS_PER_SWITCH = 4


@dataclass(frozen=True)
class PcieServers(Machine):
    """Servers of `gpus` GPUs on PCIe; four GPUs share a PCIe switch (often called PLX).

    A GPU reaches the others of its switch directly. The way to the server's other switch goes up to
    the CPU and down again, over one wire per switch and direction that its GPUs share. All GPUs of
    a server share one network adapter (HCA), which sits on switch 0. Rank r is GPU r % gpus of
    server r // gpus. Inside a server a message costs `latency`, `bandwidth`, between servers
    `hca_latency`, and the slower of the two bandwidths.
    """

    gpus: int = GPUS_PER_SERVER
    hca_latency: float = 0.0
    hca_bandwidth: float = math.inf

    def ports(self, rank: int) -> tuple[str, ...]:
        """The GPU's PCIe slot, out and in."""
        return (f"rank {rank} PCIe out", f"rank {rank} PCIe in")

    def route(self, src: int, dst: int) -> Route:
        """Through the switch; through the CPU to another switch; by HCA to another server."""
        self._check_pair(src, dst)
        (a, p), (b, q) = self._place(src), self._place(dst)
        out, into = self.ports(src)[0], self.ports(dst)[1]
        if a == b:
            return Route(out, into, _through_cpu(a, p, q), self.latency, self.bandwidth)
        links = (*_through_cpu(a, p, 0), f"server {a} PLX 0 to HCA", f"server {a} HCA out",
                 f"server {b} HCA in", f"server {b} HCA to PLX 0", *_through_cpu(b, 0, q))
        return Route(out, into, links, self.hca_latency, min(self.bandwidth, self.hca_bandwidth))

    @property
    def levels(self) -> tuple[Level, ...]:
        """Behind one switch, inside the server (shared wires), between servers (a shared HCA)."""
        inside = (self.latency, self.bandwidth)
        levels = [Level("PCIe switch", min(GPUS_PER_SWITCH, self.gpus), *inside)]
        if self.gpus > GPUS_PER_SWITCH:
            levels.append(Level("server, through the CPU", self.gpus, *inside))
        if self.max_ranks > self.gpus:
            levels.append(Level("InfiniBand", self.max_ranks, self.hca_latency,
                                min(self.bandwidth, self.hca_bandwidth)))
        return tuple(levels)

    def check_world_size(self, world_size: int) -> None:
        """ValueError when there are more ranks than GPUs."""
        if world_size > self.max_ranks:
            raise ValueError(f"world_size={world_size}: {self.name} has {self.max_ranks} GPUs, "
                             f"one a rank; servers={-(-world_size // self.gpus)} has enough")

    def graph(self, world_size: int | None = None) -> dict:
        """GPUs, PCIe switches, CPU and HCA of each server. See `Machine.graph`."""
        nodes, links = [], []
        for r in range(self._ranks_to_draw(world_size)):
            server, switch = self._place(r)
            nodes.append(rank_node(r, f"GPU {r % self.gpus}", "gpu", r + 2 * server, 0))
            links += both_ways(*self.ports(r), f"rank {r}", f"server {server} PLX {switch}",
                               self.bandwidth, "PCIe")
        servers = self.max_ranks // self.gpus
        for server in range(servers):
            self._draw_server(server, nodes, links, networked=servers > 1)
        if servers > 1:
            nodes.append(node("network", "InfiniBand", "network", 3, self._left(servers) / 2, 3))
        return {"nodes": nodes, "links": links}

    def _draw_server(self, server: int, nodes: list, links: list, networked: bool) -> None:
        name, left = f"server {server}", self._left(server)
        nodes.append(node(f"{name} CPU", "CPU", "cpu", 2, left + (self.gpus - 1) / 2, 2))
        for p in range(-(-self.gpus // GPUS_PER_SWITCH)):
            middle = left + p * GPUS_PER_SWITCH + 1.5
            nodes.append(node(f"{name} PLX {p}", "PCIe switch (PLX)", "plx", 1, middle, 1))
            links += both_ways(f"{name} PLX {p} to CPU", f"{name} CPU to PLX {p}",
                               f"{name} PLX {p}", f"{name} CPU", self.bandwidth, "PCIe")
        if networked:
            nodes.append(node(f"{name} HCA", "HCA", "hca", 2, left, 2))
            links += both_ways(f"{name} PLX 0 to HCA", f"{name} HCA to PLX 0", f"{name} PLX 0",
                               f"{name} HCA", self.bandwidth, "PCIe")
            links += both_ways(f"{name} HCA out", f"{name} HCA in", f"{name} HCA", "network",
                               self.hca_bandwidth, "InfiniBand")

    def _place(self, rank: int) -> tuple[int, int]:
        """Server of a rank, and the PCIe switch there."""
        return rank // self.gpus, rank % self.gpus // GPUS_PER_SWITCH

    def _left(self, server: int) -> int:
        return server * (self.gpus + 2)


def _through_cpu(server: int, switch: int, other: int) -> tuple[str, ...]:
    if switch == other:
        return ()
    return (f"server {server} PLX {switch} to CPU", f"server {server} CPU to PLX {other}")


def pcie_server(gpus: int = GPUS_PER_SERVER, servers: int = 1) -> PcieServers:
    """`servers` servers of `gpus` A100 GPUs on PCIe 4.0, one HDR InfiniBand adapter each.

    ================  ============  ==============================================================
    PCIe 4.0 x16      31 GB/s       one way: each GPU, each switch's wire to the CPU, the HCA [1, 2]
    HCA               25 GB/s       200 Gb/s HDR, one way [3]
    arithmetic        312 TFLOP/s   bf16, dense [1, 2]
    HBM               2.0 TB/s      80 GB [1, 2]
    latency, PCIe     5.7 us        NCCL's ring, protocol Simple, per hop, "PCI" [4]
    latency, HCA      9.6 us        the same, "NET" [4]
    ================  ============  ==============================================================

    [1] stas00/ml-engineering, compute/accelerator/README.md and network/README.md.
    [2] jax-ml/scaling-book, gpus.md. [3] Narayanan and others, arXiv 2104.04473. [4] NVIDIA/nccl,
    src/graph/tuning.cc (01afd20a, of 2021).

    The layout is an example, not one product: four GPUs a switch, the HCA on the first. Real
    servers lose bandwidth on the way through a CPU; that is not modelled. ValueError when `gpus` is
    not an integer in 1..8, or `servers` not one of at least 1.
    """
    check_whole("gpus", gpus, GPUS_PER_SERVER, "the GPUs that one server has room for")
    check_whole("servers", servers)
    name = f"PCIe server, {gpus} GPUs"
    return PcieServers(name if servers == 1 else f"{servers} x {name}", latency=5.7e-6,
                       bandwidth=31e9, flops=312e12, memory_bandwidth=2.0e12, memory_bytes=80e9,
                       max_ranks=gpus * servers, gpus=gpus, hca_latency=9.6e-6, hca_bandwidth=25e9)
