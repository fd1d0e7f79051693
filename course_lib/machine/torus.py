"""TPU slices: chips on a 2D or 3D torus, each joined to its neighbours and to nobody else."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .model import Level, Machine, Route, link, rank_node

AXES = "xyz"
CUBE = 4


@dataclass(frozen=True)
class Torus(Machine):
    """Chips on a grid of `shape`, one wire each way between neighbours; `wraps` names closed axes.

    Rank r has the coordinates of index r in an array of that shape, the last axis fastest. On each
    axis a chip has two ports, towards + and -; all of them work at once. A message travels axis by
    axis in order (dimension-ordered routing), on a closed axis the shorter way round, towards +
    when both are equal. It occupies every wire on its way for as long as it lasts, and takes
    `latency` per hop plus bytes / `bandwidth`: chips pass it on without storing it. A wire is named
    after the chip it leaves: "rank 5 x+" is both rank 5's out-port and its neighbour's in-port.
    """

    shape: tuple[int, ...] = (1, 1)
    wraps: tuple[bool, ...] = (False, False)

    def ports(self, rank: int) -> tuple[str, ...]:
        """The wires that leave the chip, then those that enter it."""
        around = [(axis, step, other) for axis in range(len(self.shape)) for step in (1, -1)
                  if (other := self._neighbour(rank, axis, step)) is not None]
        return (*(_wire(rank, axis, step) for axis, step, _ in around),
                *(_wire(other, axis, -step) for axis, step, other in around))

    def route(self, src: int, dst: int) -> Route:
        """Along the links, axis by axis."""
        self._check_pair(src, dst)
        wires, here, goal = [], src, self._coordinates(dst)
        for axis in range(len(self.shape)):
            for step in self._steps(self._coordinates(src)[axis], goal[axis], axis):
                wires.append(_wire(here, axis, step))
                here = self._neighbour(here, axis, step)
        return Route(wires[0], wires[-1], tuple(wires[1:-1]), self.latency * len(wires),
                     self.bandwidth)

    @property
    def levels(self) -> tuple[Level, ...]:
        """One: a neighbour is one hop away, any other chip several."""
        return (Level("a hop", self.max_ranks, self.latency, self.bandwidth),)

    def check_world_size(self, world_size: int) -> None:
        """ValueError unless there is exactly one rank for every chip."""
        if world_size != self.max_ranks:
            raise ValueError(f"world_size={world_size}: {self.name} has {self.max_ranks} chips, "
                             f"and every chip is one rank")

    def graph(self, world_size: int | None = None) -> dict:
        """Chips on their grid, planes of the first axis side by side. See `Machine.graph`."""
        nodes, links = [], []
        for r in range(self._ranks_to_draw(world_size)):
            place = self._coordinates(r)
            x, y = place[-1], place[-2]
            if len(place) == 3:
                x, y = x + place[0] * (self.shape[2] + 1), y + place[0] * 0.5
            nodes.append(rank_node(r, ",".join(map(str, place)), "tpu", x, y))
            for axis in range(len(place)):
                for step in (1, -1):
                    other = self._neighbour(r, axis, step)
                    if other is not None:
                        far = abs(self._coordinates(other)[axis] - place[axis]) > 1
                        links.append(link(_wire(r, axis, step), f"rank {r}", f"rank {other}",
                                          self.bandwidth, "ICI wrap" if far else "ICI"))
        return {"nodes": nodes, "links": links}

    def _coordinates(self, rank: int) -> tuple[int, ...]:
        place = []
        for size in reversed(self.shape):
            rank, at = divmod(rank, size)
            place.append(at)
        return tuple(reversed(place))

    def _neighbour(self, rank: int, axis: int, step: int) -> int | None:
        """The chip one step along the axis, or None where the grid ends."""
        at, size = self._coordinates(rank)[axis], self.shape[axis]
        to = (at + step) % size if self.wraps[axis] else at + step
        if not 0 <= to < size:
            return None
        return rank + (to - at) * math.prod(self.shape[axis + 1:])

    def _steps(self, start: int, end: int, axis: int) -> list[int]:
        """The hops along one axis, each +1 or -1."""
        ahead = end - start
        if self.wraps[axis]:
            size = self.shape[axis]
            ahead %= size
            ahead -= size if 2 * ahead > size else 0
        return [1 if ahead > 0 else -1] * abs(ahead)


def tpu_v4(shape: tuple[int, ...]) -> Torus:
    """A slice of TPU v4: 45 GB/s a link, one way; 275 TFLOP/s in bf16; 32 GB of HBM at 1.2 TB/s.

    `shape` has three sizes, or two for a plane cut out of a larger slice, and fits into the pod of
    16 x 16 x 16 chips. The latency is 1 us per hop. (jax-ml/scaling-book, tpus.md and sharding.md.)

    Wrap links: machines are built of cubes of 4 x 4 x 4 chips, whose faces optical switches join.
    So a slice of whole cubes, all sizes multiples of 4, is closed on every axis, and a smaller one,
    such as 2 x 2 x 4, on none (Google Cloud's documentation of TPU v5p: slices of 4 x 4 x 4 and
    larger are full tori). A plane follows the same rule. Twisted tori are not modelled.

    ValueError for a shape that is none of these. A replay needs exactly as many ranks as chips.
    """
    return _slice("TPU v4", shape, (16, 16, 16), bandwidth=45e9, flops=275e12,
                  memory_bandwidth=1.2e12, memory_bytes=32e9)


def tpu_v5p(shape: tuple[int, ...]) -> Torus:
    """A slice of TPU v5p: 90 GB/s a link, one way; 459 TFLOP/s in bf16; 96 GB of HBM at 2.8 TB/s.

    The pod has 16 x 20 x 28 chips. Shapes, wrap links, latency and sources as in `tpu_v4`.
    """
    return _slice("TPU v5p", shape, (16, 20, 28), bandwidth=90e9, flops=459e12,
                  memory_bandwidth=2.8e12, memory_bytes=96e9)


def _slice(chip: str, shape: tuple[int, ...], pod: tuple[int, ...], **rates) -> Torus:
    try:
        shape = tuple(shape)
    except TypeError:
        shape = (shape,)
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in shape)
    if len(shape) not in (2, 3) or not whole:
        raise ValueError(f"shape={shape}: must be two or three integers of at least 1")
    largest = sorted(pod)[-len(shape):]
    if any(n > most for n, most in zip(sorted(shape), largest)):
        raise ValueError(f"shape={shape}: must fit into a pod of {chip}, {'x'.join(map(str, pod))}")
    if math.prod(shape) == 1:
        raise ValueError(f"shape={shape}: must have at least two chips")
    wraps = (all(n % CUBE == 0 for n in shape),) * len(shape)
    return Torus(f"{chip} {'x'.join(map(str, shape))}", latency=1e-6, max_ranks=math.prod(shape),
                 shape=shape, wraps=wraps, **rates)


def _wire(rank: int, axis: int, step: int) -> str:
    return f"rank {rank} {AXES[axis]}{'+' if step > 0 else '-'}"
