"""What happened in a run: the ordered program of every rank and stream, written by the code that
ran.

A `Trace` holds one list of `Event` per (rank, stream). `replay` (virtual_time.py) runs that program
on a machine model; `measured` (timeline.py) reads the wall clock of the same events. Nothing here
needs torch.

Kinds of event, and the fields that each one fills:

=========  =====================================================================================
compute    label, flops, nbytes (memory traffic); `seconds` instead where a lesson sets the time
send/recv  peer, nbytes, dtype, shape, channel: blocking, a rendezvous
isend      the same plus `requests` (one id): returns at once
irecv      likewise
wait       requests: the ids that this call waits for, in that order
record     event: marks a point of this stream that another stream of the same rank may wait for
await      event: goes on once the same rank's stream has passed the `record` of that name
alloc      nbytes, category, label: bytes that a storage holds from here on
free       the same, from here on no longer held (a change of category is a free and an alloc)
begin/end  label (the collective's name), nbytes, dtype, shape, channel, name: brackets of one call
=========  =====================================================================================

`parts` and `moves` say where the data is, so that a view can follow it (flow.py). A part is
(buffer, offset, elements); buffers are numbered per rank as they are first met. `parts` of a
message is its one tensor; of begin, the tensors given; of end, those returned. `moves` are the
copies ("copy", into, source) and additions ("add", into, source) inside the rank's memory before
this event.

`peer` is a rank of the world. `channel` is "communicator" for plain send/recv and
"communicator#call" inside a collective; the k-th send from a to b on a channel meets the k-th
receive of b from a on that channel. """

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

MAIN = "main"
CATEGORIES = ("parameter", "gradient", "optimizer", "activation", "buffer", "other")
ASYNCHRONOUS = "asynchronous"  # the mark of a worker that takes turns by its speed
SENDS, RECVS = ("send", "isend"), ("recv", "irecv")


@dataclass(slots=True, frozen=True)
class Event:
    """One step of a rank's program. Times are seconds since the run began, by the wall clock."""

    kind: str
    start: float = 0.0
    end: float = 0.0
    label: str = ""
    peer: int = -1
    nbytes: int = 0
    dtype: str = ""
    shape: tuple[int, ...] = ()
    channel: str = ""
    requests: tuple[int, ...] = ()
    event: str = ""
    flops: int = 0
    seconds: float | None = None
    category: str = ""
    name: str = ""  # what the caller named the call: a parameter, a micro-batch
    site: tuple[str, int] = ("", 0)  # file and line of the learner's call
    source: tuple[str, int] = ("", 0)  # file and line of the library that made the event
    parts: tuple[tuple[int, int, int], ...] = ()
    moves: tuple[tuple, ...] = ()

    @property
    def key(self) -> tuple:
        """What two runs of one program must agree on, whatever their clocks and line numbers."""
        return (self.kind, self.peer, self.nbytes, self.dtype, self.label, self.channel, self.event)


@dataclass(frozen=True)
class Call:
    """One collective call of one rank. `nbytes` is the size of its tensor argument in bytes."""

    op: str
    number: int
    channel: str
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    name: str
    site: tuple[str, int]


@dataclass
class Trace:
    """The recorded programs of all ranks. `programs[rank, stream]` is a list of Event, in program
    order.
    """

    world_size: int
    programs: dict[tuple[int, str], list[Event]] = field(default_factory=dict)

    def streams(self, rank: int) -> list[str]:
        """Names of the rank's streams, `main` first."""
        self._check(rank)
        names = [stream for r, stream in self.programs if r == rank]
        return sorted(names, key=lambda name: (name != MAIN, name))

    def program(self, rank: int, stream: str = MAIN) -> list[Event]:
        """The events of one stream of a rank, in program order."""
        self._check(rank)
        return self.programs.get((rank, stream), [])

    def events(self, rank: int) -> list[Event]:
        """The events of all streams of a rank, by the wall clock."""
        self._check(rank)
        merged = [event for stream in self.streams(rank) for event in self.program(rank, stream)]
        return sorted(merged, key=lambda event: event.start)

    def bytes_sent(self, rank: int) -> int:
        """Payload bytes that the rank sent, over all streams, in collectives and plain sends
        alike.
        """
        return sum(e.nbytes for e in self.events(rank) if e.kind in SENDS)

    def messages_sent(self, rank: int) -> int:
        """Number of messages that the rank sent."""
        return sum(e.kind in SENDS for e in self.events(rank))

    def flops(self, rank: int) -> int:
        """Floating-point operations that the rank executed, additions inside collectives
        included.
        """
        return sum(e.flops for e in self.events(rank) if e.kind == "compute")

    def calls(self, rank: int) -> list[Call]:
        """The collective calls of the rank, outermost only (an all-reduce made of two is one), in
        order.
        """
        found = []
        for stream in self.streams(rank):
            depth = 0
            for e in self.program(rank, stream):
                if e.kind == "begin" and depth == 0:
                    number = int(e.channel.rpartition("#")[2])
                    found.append(Call(e.label, number, e.channel, e.nbytes, e.dtype, e.shape,
                                      e.name, e.site))
                depth += (e.kind == "begin") - (e.kind == "end")
        return found

    def peak_bytes(self, rank: int, category: str | None = None) -> int:
        """Largest number of bytes that the rank held at once: of one category, or of all
        together.
        """
        if category is not None and category not in CATEGORIES:
            raise ValueError(f"category={category!r}: must be one of {', '.join(CATEGORIES)}")
        return max((sum(held.values()) if category is None else held[category]
                    for _, held in self.held_bytes(rank)), default=0)

    def held_bytes(self, rank: int) -> list[tuple[float, dict[str, int]]]:
        """(wall clock, bytes held per category) after every change, in order."""
        held, curve = Counter({category: 0 for category in CATEGORIES}), []
        for e in self.events(rank):
            if e.kind in ("alloc", "free"):
                held[e.category] += e.nbytes if e.kind == "alloc" else -e.nbytes
                curve.append((e.start, dict(held)))
        return curve

    def held_at(self, rank: int, mark: str) -> dict[str, int]:
        """Bytes held per category where the rank called `group.mark(mark)` (the last time).

        Raises ValueError if it never did.
        """
        held, found = Counter({category: 0 for category in CATEGORIES}), None
        for e in self.events(rank):
            if e.kind in ("alloc", "free"):
                held[e.category] += e.nbytes if e.kind == "alloc" else -e.nbytes
            elif e.kind == "record" and e.event == mark:
                found = dict(held)
        if found is None:
            raise ValueError(f"mark={mark!r}: rank {rank} has no such mark")
        return found

    @property
    def asynchronous(self) -> bool:
        """Whether the order of messages came from workers' speeds: then only these speeds, on
        `stated()`, can replay it.
        """
        return any(e.kind == "record" and e.event == ASYNCHRONOUS
                   for program in self.programs.values() for e in program)

    def to_chrome(self, path) -> None:
        """Write the run, by its wall clock, as a trace for Perfetto (ui.perfetto.dev) or
        chrome://tracing.
        """
        from .timeline import measured

        measured(self).to_chrome(path)

    def _check(self, rank: int) -> None:
        if not 0 <= rank < self.world_size:
            raise ValueError(f"rank={rank}: must be in 0..{self.world_size - 1}")
