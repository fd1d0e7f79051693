"""Ports and links in virtual time: which message may start, and which waits for what.

The rule, and why it is near n log n: a message that cannot start is put down at one busy resource
of its route, the one that frees last, and looked at again only when that one is freed. Messages of
one pair of ranks queue up behind each other in a `Lane`, so a port with thousands of messages to
one peer looks at the first of them only.
"""

from __future__ import annotations

from collections import defaultdict, deque
from heapq import heappop, heappush

from .machine import Machine
from .trace import Event
from .waitfor import file_and_line


class Post:
    """One side of a message: what a stream has posted, and which streams are blocked on it."""

    __slots__ = ("stream", "event", "done", "waiters")

    def __init__(self, stream, event: Event) -> None:
        self.stream, self.event, self.done = stream, event, False
        self.waiters: tuple = ()

    @property
    def where(self) -> str:
        """The rank, and the learner's line where it is known."""
        place = file_and_line(self.event.site)
        return f"rank {self.stream.rank}" + (f" at {place}" if place else "")


def check_sizes(send: Post, recv: Post) -> None:
    """ValueError when the two sides of a message differ in size."""
    if send.event.nbytes != recv.event.nbytes:
        raise ValueError(
            f"sizes differ on channel {send.event.channel!r}: {send.where} sends "
            f"{send.event.nbytes} bytes, {recv.where} receives {recv.event.nbytes} bytes")


class Lane:
    """Messages from one rank to another, waiting their turn, oldest first: (posted, send, recv)."""

    __slots__ = ("src", "dst", "route", "resources", "queue")

    def __init__(self, src: int, dst: int, machine: Machine) -> None:
        self.src, self.dst = src, dst
        self.route = machine.route(src, dst)
        self.resources = self.route.resources
        self.queue: deque[tuple[float, Post, Post]] = deque()


class Wires:
    """Who holds each port and link, and which lanes wait for it.

    A lane with messages is in exactly one place: among the candidates, or in the heap of one busy
    resource of its route, the one that frees last. So a freed resource has to look at its own heap
    only.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.lanes: dict[tuple[int, int], Lane] = {}
        self.busy: dict[str, float] = {}  # resource -> when it frees
        self.waiting = defaultdict(list)  # resource -> heap of (posted, src, dst, lane)
        # Heap of (posted, src, dst, lane, resource in whose heap it was or None).
        self.candidates: list[tuple] = []

    def add(self, src: int, dst: int, posted: float, send: Post, recv: Post) -> None:
        """A message that both sides have posted."""
        lane = self.lanes.get((src, dst))
        if lane is None:
            lane = self.lanes[src, dst] = Lane(src, dst, self.machine)
        lane.queue.append((posted, send, recv))
        if len(lane.queue) == 1:
            heappush(self.candidates, (posted, src, dst, lane, None))

    def release(self, lane: Lane) -> None:
        """The lane's message has ended."""
        for resource in lane.resources:
            del self.busy[resource]
            self._next_candidate(resource)

    def start(self, now: float):
        """Start what may start, oldest first: yields (lane, (posted, send, recv), end)."""
        while self.candidates:
            posted, src, dst, lane, origin = heappop(self.candidates)
            blocking = [r for r in lane.resources if r in self.busy]
            if blocking:
                last = max(blocking, key=self.busy.__getitem__)
                heappush(self.waiting[last], (posted, src, dst, lane))
            else:
                message = lane.queue.popleft()
                end = now + lane.route.seconds(message[1].event.nbytes)
                self.busy.update(dict.fromkeys(lane.resources, end))
                if lane.queue:
                    head = (lane.queue[0][0], src, dst, lane)
                    heappush(self.waiting[lane.resources[0]], head)
                yield lane, message, end
            if origin is not None and origin not in self.busy:
                self._next_candidate(origin)

    def _next_candidate(self, resource: str) -> None:
        if self.waiting[resource]:
            heappush(self.candidates, (*heappop(self.waiting[resource]), resource))
