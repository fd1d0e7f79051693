"""What every machine is: the ports of each rank, the links between ranks, how fast a rank computes.

A `Machine` answers two questions that `replay` asks: which resources a message from one rank to
another occupies and for how long (`route`), and how long a computation takes (`compute_seconds`).
A port or a link carries one message at a time, so contention is what the resource names say it is:
two routes that share a name share a wire. `graph` draws the same ports and links by those names.

`Machine` itself is the uniform machine: one out-port and one in-port per rank, every pair joined
alike. Another topology is a subclass with its own `ports`, `route`, `levels` and `graph`; `replay`
needs nothing else. Variants of a machine are made by `dataclasses.replace(machine, gamma=...)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields


def check_whole(name: str, value: int, most: int | None = None, why: str = "") -> None:
    """ValueError unless `value` is an integer of at least 1 and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value}: must be an integer of at least 1")
    if most is not None and value > most:
        raise ValueError(f"{name}={value}: must be at most {most}" + (f", {why}" if why else ""))


@dataclass(frozen=True)
class Level:
    """Ranks that are joined alike: a message between two of them costs latency + bytes / bandwidth.

    `ranks` is how many one group of this level holds; None for any number. Levels go outwards: a
    message is charged by the first level whose group holds both ranks.
    """

    name: str
    ranks: int | None
    latency: float
    bandwidth: float


@dataclass(frozen=True)
class Route:
    """What one message from a rank to another occupies.

    Names of ports and links are readable, and unique in the machine; `links` are in the order of
    the way. `bandwidth` (bytes per second) is that of the slowest part; `latency` is in seconds.
    """

    out_port: str
    in_port: str
    links: tuple[str, ...]
    latency: float
    bandwidth: float

    @property
    def resources(self) -> tuple[str, ...]:
        """Everything that must be free before the message starts, each name once.

        On a wire from chip to chip the sender's out-port and the receiver's in-port are its ends.
        """
        return tuple(dict.fromkeys((self.out_port, self.in_port, *self.links)))

    @property
    def path(self) -> tuple[str, ...]:
        """The same names from the sender to the receiver."""
        return tuple(dict.fromkeys((self.out_port, *self.links, self.in_port)))

    def seconds(self, nbytes: int) -> float:
        """Seconds from the start to the end of one message of `nbytes` bytes."""
        return self.latency + nbytes / self.bandwidth


@dataclass(frozen=True)
class Machine:
    """A machine on which all pairs of ranks are joined alike, with one port per rank and direction.

    latency: seconds per message. bandwidth: bytes per second of a port, one way. flops: peak
    FLOP/s of a rank. memory_bandwidth: bytes per second between a rank and its memory. gamma:
    seconds per element added inside a collective (computations labelled "add"); None charges them
    like any other computation. max_ranks: None for as many as a trace has. memory_bytes: what a
    rank's memory holds (1 GB is 1e9 bytes). A bandwidth, peak or size may be `math.inf`: free.
    """

    name: str
    latency: float
    bandwidth: float
    flops: float
    memory_bandwidth: float
    gamma: float | None = None
    max_ranks: int | None = None
    memory_bytes: float = math.inf

    def __post_init__(self) -> None:
        for field in (f.name for f in fields(self)):
            value = getattr(self, field)
            if field.endswith(("bandwidth", "flops", "memory_bytes")) and not value > 0:
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

        `nbytes` are read or written. The model is the roofline of Williams and others, 2009. The
        label "add" says that it is an addition inside a collective, which `gamma` charges; `replay`
        gives the labels of computations inside a collective alone.
        """
        if label == "add" and self.gamma is not None:
            return self.gamma * flops
        return max(flops / self.flops, nbytes / self.memory_bandwidth)

    def check_world_size(self, world_size: int) -> None:
        """ValueError when the machine has fewer places than `world_size` ranks."""
        if self.max_ranks is not None and world_size > self.max_ranks:
            raise ValueError(f"world_size={world_size}: {self.name} has {self.max_ranks} ranks")

    @property
    def levels(self) -> tuple[Level, ...]:
        """From the closest ranks to the farthest: how many, and what a message between them costs.
        """
        return (Level("all ranks", self.max_ranks, self.latency, self.bandwidth),)

    def graph(self, world_size: int | None = None) -> dict:
        """The machine as a picture: {"nodes": [...], "links": [...]}.

        A node has id ("rank 3" for ranks), label, kind, level (0 for ranks, then outwards), x and y
        (a layout in arbitrary units). A link is one direction of a wire, from node a to node b; its
        id is the name of a port or link as in `Route` and `Timeline.link_bytes`; bandwidth is in
        bytes per second, None where it is free. `world_size` is needed where a machine has any
        number of ranks. ValueError for one that does not fit.
        """
        ranks = self._ranks_to_draw(world_size)
        nodes = [rank_node(r, f"rank {r}", "process", r, 0) for r in range(ranks)]
        nodes.append(node("exchange", self.name, "network", 1, (ranks - 1) / 2, 1))
        links = []
        for r in range(ranks):
            out, into = self.ports(r)
            links += both_ways(out, into, f"rank {r}", "exchange", self.bandwidth, "port")
        return {"nodes": nodes, "links": links}

    def _ranks_to_draw(self, world_size: int | None) -> int:
        if world_size is None and self.max_ranks is None:
            raise ValueError(f"world_size=None: {self.name} has any number of ranks, say how many")
        if world_size is None:
            return self.max_ranks
        check_whole("world_size", world_size)
        self.check_world_size(world_size)
        return self.max_ranks or world_size

    def _check_pair(self, src: int, dst: int) -> None:
        for name, rank in (("src", src), ("dst", dst)):
            if rank < 0 or (self.max_ranks is not None and rank >= self.max_ranks):
                limit = "" if self.max_ranks is None else f", below {self.max_ranks}"
                raise ValueError(f"{name}={rank}: must be at least 0{limit} on {self.name}")
        if src == dst:
            raise ValueError(f"dst={dst}: a rank sends no message to itself")


def node(id: str, label: str, kind: str, level: int, x: float, y: float) -> dict:
    """One node of a machine's picture."""
    return {"id": id, "label": label, "kind": kind, "level": level, "x": x, "y": y}


def rank_node(rank: int, label: str, kind: str, x: float, y: float) -> dict:
    """The node of a rank: its id is what `graph` promises."""
    return node(f"rank {rank}", label, kind, 0, x, y)


def link(id: str, a: str, b: str, bandwidth: float, kind: str) -> dict:
    """One direction of a wire of a machine's picture, from node a to node b."""
    finite = bandwidth if bandwidth < math.inf else None
    return {"id": id, "a": a, "b": b, "bandwidth": finite, "kind": kind}


def both_ways(out: str, into: str, a: str, b: str, bandwidth: float, kind: str) -> list[dict]:
    """A wire between a and b: `out` leads from a to b, `into` back."""
    return [link(out, a, b, bandwidth, kind), link(into, b, a, bandwidth, kind)]
