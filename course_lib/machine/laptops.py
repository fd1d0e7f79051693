"""The machine of hand calculations, and laptops: one with its loopback network, two on Ethernet."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .model import Level, Machine, Route, both_ways, check_whole, link, node, rank_node


def unit(latency: float = 0.0, bandwidth: float = 1.0) -> Machine:
    """The machine of hand calculations: one second a byte sent, one second a FLOP.

    Messages have no latency, additions inside collectives and memory traffic are free, and a
    computation with given `seconds` takes those. Any number of ranks, one out-port and one in-port
    each.
    """
    return Machine("unit", latency, bandwidth, flops=1.0, memory_bandwidth=math.inf, gamma=0.0)


def stated() -> Machine:
    """Only computations with given `seconds` take time: the clock of workers' speeds, say."""
    return Machine("stated times", 0.0, math.inf, math.inf, math.inf, gamma=0.0)


def laptop() -> Machine:
    """Ranks that are processes of one laptop and talk through its loopback network.

    Fixed round figures: 60 us a message and 2 GB/s between two processes (gloo over TCP: ping-pong
    and 4 MB all-reduce of two ranks, measured on a 2-core Linux machine with torch 2.13);
    50 GFLOP/s and 10 GB/s of memory per rank (about one core in fp32); 4 GB per rank (16 GB shared
    by four, an assumption). Ranks that share a core slow each other down; the model gives each its
    own, so with more ranks than cores it is optimistic. `measure_laptop` fits the figures to the
    machine at hand.
    """
    return Machine("laptop", latency=60e-6, bandwidth=2e9, flops=50e9, memory_bandwidth=10e9,
                   memory_bytes=4e9)


@dataclass(frozen=True)
class Laptops(Machine):
    """Two laptops joined by one cable; ranks 0..ranks_each - 1 on the first, the rest on the other.

    Inside a laptop as in `laptop()`. Between them all ranks share the cable: one message at a time
    in each direction (`cable_latency`, `cable_bandwidth`).
    """

    ranks_each: int = 1
    cable_latency: float = 0.0
    cable_bandwidth: float = math.inf

    def route(self, src: int, dst: int) -> Route:
        """Port to port inside a laptop; through the cable between them."""
        self._check_pair(src, dst)
        out, into = f"rank {src} out", f"rank {dst} in"
        a, b = src // self.ranks_each, dst // self.ranks_each
        if a == b:
            return Route(out, into, (), self.latency, self.bandwidth)
        return Route(out, into, (f"cable {a} to {b}",), self.cable_latency, self.cable_bandwidth)

    @property
    def levels(self) -> tuple[Level, ...]:
        """Inside a laptop, then through the cable."""
        return (Level("laptop", self.ranks_each, self.latency, self.bandwidth),
                Level("cable", self.max_ranks, self.cable_latency, self.cable_bandwidth))

    def graph(self, world_size: int | None = None) -> dict:
        """Ranks around their laptop, the cable between the laptops. See `Machine.graph`."""
        nodes, links = [], []
        for r in range(self._ranks_to_draw(world_size)):
            out, into = self.ports(r)
            nodes.append(rank_node(r, f"rank {r}", "process", r, 0))
            links += both_ways(out, into, f"rank {r}", f"laptop {r // self.ranks_each}",
                               self.bandwidth, "loopback")
        for a in (0, 1):
            middle = a * self.ranks_each + (self.ranks_each - 1) / 2
            nodes.append(node(f"laptop {a}", f"laptop {a}", "cpu", 1, middle, 1))
            links.append(link(f"cable {a} to {1 - a}", f"laptop {a}", f"laptop {1 - a}",
                              self.cable_bandwidth, "Ethernet"))
        return {"nodes": nodes, "links": links}


def two_laptops(ranks_each: int = 4) -> Laptops:
    """Two laptops on one Gigabit Ethernet cable, `ranks_each` processes on each.

    125 MB/s each way is the 1 Gb/s of the standard's name; headers are not deducted. A message has
    the latency of `laptop()`: the share of TCP and gloo, the cable's own being unknown here. So the
    cable is charged at its best. Inside a laptop everything is as in `laptop()`. ValueError when
    `ranks_each` is not an integer of at least 1.
    """
    check_whole("ranks_each", ranks_each)
    one = laptop()
    return Laptops("two laptops on Ethernet", one.latency, one.bandwidth, one.flops,
                   one.memory_bandwidth, max_ranks=2 * ranks_each, memory_bytes=one.memory_bytes,
                   ranks_each=ranks_each, cable_latency=one.latency, cable_bandwidth=125e6)
