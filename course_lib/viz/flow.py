"""Whose numbers are where: follows the data of a run through messages, copies and additions.

`follow` reads the `parts` and `moves` of a Trace (trace.py), knows no algorithm, and says for every
piece of memory of every rank what it contains, from when to when: its *contributions*, pairs (rank,
element) of the inputs that were copied or added into its first element; the next elements hold the
next ones. A sum over 4 ranks has 4 contributions. A pair that occurs twice was added twice.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace

from ..timeline import Message, Timeline
from ..trace import RECVS, SENDS
from .excerpt import outermost

Contributions = tuple[tuple[int, int], ...]
Part = tuple[int, int, int]  # buffer, offset, elements


@dataclass
class Piece:
    """Elements of a buffer that hold the same contributions, from `since` to `until` (seconds).

    `used` is when they were last read: a scratch buffer that nobody reads again is forgotten.
    """

    rank: int
    buffer: int
    offset: int
    elements: int
    holds: Contributions
    since: float
    until: float = math.inf
    used: float = 0.0
    written: bool = True  # False: the rank's own input, there from the start

    @property
    def end(self) -> int:
        return self.offset + self.elements

    def between(self, start: int, end: int) -> Piece:
        """The piece's elements start..end of its buffer."""
        start, end = max(start, self.offset), min(end, self.end)
        return replace(self, offset=start, elements=end - start,
                       holds=shifted(self.holds, start - self.offset))


@dataclass
class Flight:
    """A message with what it carries: (elements, contributions) of its pieces, in order."""

    message: Message
    source: Part
    target: Part
    pieces: list[tuple[int, Contributions]]


@dataclass
class Flow:
    """What `follow` has found. `given` and `returned` are the parts of the one collective call that
    the trace consists of, by rank; of a program without one, `given` is what is read before it is
    written.
    """

    timeline: Timeline
    op: str = ""
    given: dict[int, list[Part]] = field(default_factory=dict)
    returned: dict[int, list[Part]] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    flights: list[Flight] = field(default_factory=list)

    @property
    def adds(self) -> bool:
        """Whether anything was added: the cells are partial sums."""
        return any(len(piece.holds) > 1 for piece in self.pieces)

    def at_end(self, rank: int, part: Part) -> list[tuple[int, Contributions]]:
        """What the part of the rank's memory holds in the end: (elements, contributions)."""
        buffer, offset, elements = part
        mine = [p.between(offset, offset + elements) for p in self.pieces
                if p.rank == rank and p.buffer == buffer and p.until == math.inf
                and p.offset < offset + elements and p.end > offset]
        return [(p.elements, p.holds) for p in sorted(mine, key=lambda p: p.offset)]


def shifted(holds: Contributions, by: int) -> Contributions:
    """The contributions of the element `by` further on."""
    return holds if by == 0 else tuple((rank, element + by) for rank, element in holds)


def follow(timeline: Timeline) -> Flow:
    """The Flow of a Timeline (of the whole trace, or of one call: `one_call`).

    ValueError when the trace was recorded without `parts`.
    """
    trace = timeline.trace
    if any(not e.parts for program in trace.programs.values() for e in program
           if e.kind in SENDS):
        raise ValueError("x: its messages do not say which part of the memory they carry; record "
                         "it with run_ranks(..., record=True), the default, or with dry_run")
    flow, ends = Flow(timeline), {}
    for (rank, _), program in trace.programs.items():
        calls = outermost(program)
        if len(calls) == 1 and calls[0] == (0, len(program)):
            ends[rank] = (program[0], program[-1])
    if len(ends) == len(trace.programs):
        flow.op = next(iter(ends.values()), [None])[0].label if ends else ""
        flow.given = {rank: list(first.parts) for rank, (first, _) in ends.items()}
        flow.returned = {rank: list(last.parts) for rank, (_, last) in ends.items()}
    else:
        flow.given = _read_first(_Follower(flow).run())
        flow.pieces, flow.flights = [], []
    return _Follower(flow).run()


def _read_first(flow: Flow) -> dict[int, list[Part]]:
    """The extent of every buffer that was read before it was written, by rank."""
    found: dict[int, dict[int, list[int]]] = defaultdict(dict)
    for p in flow.pieces:
        if not p.written and p.used > 0.0:
            low, high = found[p.rank].get(p.buffer, (p.offset, p.end))
            found[p.rank][p.buffer] = [min(low, p.offset), max(high, p.end)]
    return {rank: [(buffer, low, high - low) for buffer, (low, high) in sorted(mine.items())]
            for rank, mine in found.items()}


class _Follower:
    """Runs every stream's program in its order; a receive waits until its send was reached."""

    def __init__(self, flow: Flow):
        self.flow, trace = flow, flow.timeline.trace
        self.memory: dict[tuple[int, int], list[Piece]] = defaultdict(list)
        self.message = {id(e): m for m in flow.timeline.messages for e in (m.send, m.recv)}
        self.ends = {id(s.event): s.end for s in flow.timeline.spans if s.kind == "compute"}
        self.sent: dict[int, tuple] = {}  # message -> source part and pieces
        self.posted: dict[tuple[int, int], object] = {}
        self.recorded: set[tuple[int, str]] = set()
        self.streams = [[rank, list(program), 0, 0.0]
                        for (rank, _), program in trace.programs.items()]

    def run(self) -> Flow:
        for rank, parts in self.flow.given.items():
            for part in parts:
                self._cut(rank, part)
        moving = True
        while moving:
            moving = False
            for stream in self.streams:
                while stream[2] < len(stream[1]) and self._step(stream):
                    stream[2], moving = stream[2] + 1, True
        for pieces in self.memory.values():
            self.flow.pieces += pieces
        return self.flow

    def _step(self, stream) -> bool:
        """Follow one event; False when it has to wait for another stream."""
        rank, program, at, now = stream
        event = program[at]
        if event.kind == "await" and (rank, event.event) not in self.recorded:
            return False
        waited = [event] if event.kind in SENDS + RECVS else [
            self.posted[rank, request] for request in event.requests
            if event.kind == "wait" and (rank, request) in self.posted]
        due = [e for e in waited if e.kind in RECVS and event.kind != "irecv"]
        if any(id(self.message[id(e)]) not in self.sent for e in due):
            return False
        for how, into, source in event.moves:
            self._move(rank, how, into, source, now)
        if event.kind in SENDS:
            self._send(rank, event)
        if event.kind in ("isend", "irecv"):
            self.posted[rank, event.requests[0]] = event
        else:
            for e in due:
                self._receive(rank, e)
            stream[3] = max([now, self.ends.get(id(event), 0.0)]
                            + [self.message[id(e)].end for e in waited])
        if event.kind == "record":
            self.recorded.add((rank, event.event))
        return True

    def _move(self, rank, how, into, source, now) -> None:
        read = self._read(rank, source, now)
        if how == "add":
            read = _sum(self._read(rank, into, now), read)
        self._write(rank, into, read, now)

    def _send(self, rank, event) -> None:
        message, part = self.message[id(event)], event.parts[0]
        self.sent[id(message)] = part, self._read(rank, part, message.end)

    def _receive(self, rank, event) -> None:
        message, part = self.message[id(event)], event.parts[0]
        source, pieces = self.sent[id(message)]
        self._write(rank, part, pieces, message.end)
        self.flow.flights.append(Flight(message, source, part, pieces))

    def _read(self, rank, part, now) -> list[tuple[int, Contributions]]:
        """What the part holds; it is in use until `now`."""
        read = self._cut(rank, part)
        for piece in read:
            piece.used = max(piece.used, now)
        return [(piece.elements, piece.holds) for piece in read]

    def _write(self, rank, part, pieces, now) -> None:
        for old in self._cut(rank, part):
            old.until = now
            self.memory[rank, part[0]].remove(old)
            if old.written or old.used > 0.0 or self._is_given(old):
                self.flow.pieces.append(old)  # else: memory before its first use
        at = part[1]
        for elements, holds in pieces:
            self.memory[rank, part[0]].append(Piece(rank, part[0], at, elements, holds, now,
                                                    used=now))
            at += elements

    def _cut(self, rank, part) -> list[Piece]:
        """The pieces of exactly this part, cut out of larger ones; what is not known is own."""
        buffer, start, elements = part
        end, inside, outside = start + elements, [], []
        for piece in self.memory[rank, buffer]:
            if piece.end <= start or piece.offset >= end:
                outside.append(piece)
                continue
            inside.append(piece.between(start, end))
            outside += [piece.between(a, b) for a, b in ((piece.offset, start), (end, piece.end))
                        if a < b]
        inside.sort(key=lambda piece: piece.offset)
        at, gaps = start, []
        for piece in [*inside, None]:
            stop = end if piece is None else piece.offset
            if at < stop:
                gaps += self._own(rank, buffer, at, stop)
            at = stop if piece is None else piece.end
        inside = sorted(inside + gaps, key=lambda piece: piece.offset)
        self.memory[rank, buffer] = outside + inside
        return inside

    def _own(self, rank, buffer, start, end) -> list[Piece]:
        """Elements that nobody has written: the rank's own input, counted over all that is given.

        A buffer that was not given counts its own elements."""
        base, found = 0, []
        for given, offset, elements in self.flow.given.get(rank, ()):
            low, high = max(start, offset), min(end, offset + elements)
            if given == buffer and low < high:
                found.append(Piece(rank, buffer, low, high - low,
                                   ((rank, base + low - offset),), 0.0, written=False))
            base += elements
        return found or [Piece(rank, buffer, start, end - start, ((rank, start),), 0.0,
                               written=False)]

    def _is_given(self, piece: Piece) -> bool:
        return any(buffer == piece.buffer for buffer, _, _ in self.flow.given.get(piece.rank, ()))


def _sum(one, other) -> list[tuple[int, Contributions]]:
    """The sum of two equally long rows of pieces, cut where either is cut."""
    found, left, right = [], list(one), list(other)
    while left and right:
        (n, a), (m, b) = left[0], right[0]
        step = min(n, m)
        found.append((step, tuple(sorted(a + b))))
        for row, size, holds in ((left, n, a), (right, m, b)):
            row[0] = (size - step, shifted(holds, step))
            if size == step:
                row.pop(0)
    return found
