"""When everything happened: spans, messages, links and memory on one clock, measured or replayed.

`replay` returns a Timeline in the virtual time of a machine; `measured` returns one from the wall
clock of the run itself. Views draw Timelines; they contain no physics. """

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field

from .trace import MAIN, RECVS, SENDS, Event, Trace


@dataclass(slots=True, frozen=True)
class Span:
    """One piece of a stream's time. `kind` is compute, send, recv, wait or await (idle is what is
    left).

    A span of kind send, recv or wait ends when the communication it waits for has ended.
    """

    rank: int
    stream: str
    kind: str
    start: float
    end: float
    event: Event

    @property
    def label(self) -> str:
        return self.event.label


@dataclass(slots=True, frozen=True)
class Message:
    """One transfer: posted by both sides at `posted`, on the wire from `start` to `end`
    (seconds).
    """

    src: int
    dst: int
    nbytes: int
    posted: float
    start: float
    end: float
    channel: str
    label: str
    send: Event
    recv: Event
    src_stream: str = MAIN
    dst_stream: str = MAIN


@dataclass
class Timeline:
    """Spans and messages in seconds from 0, for all ranks. `machine` names the clock they are
    on.
    """

    world_size: int
    machine: str
    spans: list[Span] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    held: dict[int, list[tuple[float, dict[str, int]]]] = field(default_factory=dict)
    link_bytes: dict[str, int] = field(default_factory=dict)
    link_seconds: dict[str, float] = field(default_factory=dict)
    finished: dict[tuple[int, str],
                   float] = field(default_factory=dict)  # end of each stream's program
    trace: Trace | None = None

    @property
    def makespan(self) -> float:
        """Seconds until the last stream of the last rank has ended."""
        return max(self.finished.values(), default=0.0)

    def of(self, rank: int, stream: str | None = None) -> list[Span]:
        """The rank's spans by start time; of one stream, or of all."""
        self._check_rank(rank)
        mine = [s for s in self.spans if s.rank == rank and stream in (None, s.stream)]
        return sorted(mine, key=lambda s: (s.start, s.end))

    def span(self, rank: int) -> float:
        """Seconds from the start of the rank's first computation or message to the end of its last.

        Waiting before the first and after the last of them is not part of the device span.
        """
        self._check_rank(rank)
        edges = self._busy(rank)
        return max(e for _, e in edges) - min(s for s, _ in edges) if edges else 0.0

    def idle(self, rank: int) -> float:
        """Seconds of the makespan in which the rank computes nothing on any stream."""
        self._check_rank(rank)
        return self.makespan - _union([(s.start, s.end) for s in self.spans
                                       if s.rank == rank and s.kind == "compute"])

    def exposed(self, rank: int) -> float:
        """Seconds in which the rank takes part in a transfer and computes nothing."""
        self._check_rank(rank)
        compute = [(s.start, s.end) for s in self.spans if s.rank == rank and s.kind == "compute"]
        moving = [(m.start, m.end) for m in self.messages if rank in (m.src, m.dst)]
        return _union(compute + moving) - _union(compute)

    def memory(self, rank: int) -> list[tuple[float, dict[str, int]]]:
        """(seconds, bytes held per category) after every change of what the rank holds."""
        self._check_rank(rank)
        return self.held.get(rank, [])

    def to_chrome(self, path) -> None:
        """Write for Perfetto: pid = rank, tid = stream, an arrow (flow) from each send to its
        receive.
        """
        with open(path, "w") as file:
            json.dump({"traceEvents": list(self._chrome_events()), "displayTimeUnit": "ms"}, file)

    def _check_rank(self, rank: int) -> None:
        if rank not in range(self.world_size):
            raise ValueError(f"rank={rank!r}: must be in 0..{self.world_size - 1}")

    def _busy(self, rank: int) -> list[tuple[float, float]]:
        return ([(s.start, s.end) for s in self.spans if s.rank == rank and s.kind == "compute"]
                + [(m.start, m.end) for m in self.messages if rank in (m.src, m.dst)])

    def _chrome_events(self):
        tid = {key: i for i,
               key in enumerate(sorted(self.finished, key=lambda k: (k[0], k[1] != MAIN, k[1])))}
        for (rank, stream), number in tid.items():
            yield {"ph": "M", "name": "process_name", "pid": rank, "tid": number,
                   "args": {"name": f"rank {rank}"}}
            yield {"ph": "M", "name": "thread_name", "pid": rank, "tid": number,
                   "args": {"name": stream}}
        for s in self.spans:
            yield {"ph": "X", "name": s.label or s.kind, "cat": s.kind, "pid": s.rank,
                   "tid": tid[s.rank,
                              s.stream], "ts": s.start * 1e6, "dur": (s.end - s.start) * 1e6,
                   "args": {"bytes": s.event.nbytes, "flops": s.event.flops}}
        for number, m in enumerate(self.messages):
            for side, rank, stream, name, begin in (("s", m.src, m.src_stream, "send", m.start),
                                                    ("f", m.dst, m.dst_stream, "recv", m.end)):
                # A flow binds to the slice around it, so each end gets a slice of its own.
                yield {"ph": "X", "name": f"{name} {m.label}".strip(), "cat": "message",
                       "pid": rank,
                       "tid": tid[rank,
                                  stream], "ts": begin * 1e6, "dur": 0, "args": {"bytes": m.nbytes}}
                yield {"ph": side, "bp": "e", "id": number, "name": "message", "cat": "message",
                       "pid": rank, "tid": tid[rank, stream], "ts": begin * 1e6}


def measured(trace: Trace) -> Timeline:
    """The Timeline of the run itself: the same spans and messages, by the wall clock of the
    ranks.
    """
    timeline = Timeline(trace.world_size, "wall clock", trace=trace)
    sends, recvs = defaultdict(list), defaultdict(list)
    for (rank, stream), program in trace.programs.items():
        done = {}  # request id -> end of the wait that completed it
        for e in program:
            if e.kind == "wait":
                done.update(dict.fromkeys(e.requests, e.end))
        for e in program:
            end = done.get(e.requests[0], e.end) if e.kind in ("isend", "irecv") else e.end
            if e.kind in SENDS:
                sends[e.channel, rank, e.peer].append((e, stream, end))
            if e.kind in RECVS:
                recvs[e.channel, e.peer, rank].append((e, stream, end))
            if e.kind in ("compute", "send", "recv", "wait", "await") and e.end > e.start:
                timeline.spans.append(Span(rank, stream, e.kind, e.start, e.end, e))
        timeline.finished[rank, stream] = program[-1].end if program else 0.0
    for key in sends:
        for (s, s_stream, _), (r, r_stream, r_end) in zip(sends[key], recvs[key]):
            posted = max(s.start, r.start)
            timeline.messages.append(Message(key[1], key[2], s.nbytes, posted, posted,
                                             max(posted,
                                                 r_end), key[0], s.label, s, r, s_stream, r_stream))
    timeline.held = {rank: trace.held_bytes(rank) for rank in range(trace.world_size)}
    return timeline


def _union(intervals: list[tuple[float, float]]) -> float:
    """Total length covered by the intervals."""
    total, reach = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return total
