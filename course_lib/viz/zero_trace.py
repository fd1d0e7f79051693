"""The units of a ZeRO run as its trace names them, and what happens to them, in order of time.

`zero.py` names what it holds and the calls it makes after their unit: "unit 2", "unit 2 gradients".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..timeline import Timeline
from ..trace import MAIN, Event, Trace
from .excerpt import outermost
from .flow import Flow, follow

LANES = {"parameter": "parameters", "gradient": "gradients", "master": "master", "m": "moment m",
         "v": "moment v"}
HOLDS = {  # category and the rest of the name -> lane, and whether it is the rank's own part only
    ("parameter", ""): ("parameter", False), ("parameter", "shard"): ("parameter", True),
    ("gradient", "full gradient"): ("gradient", False),
    ("gradient", "gradient shard"): ("gradient", True),
    ("buffer", "gradients"): ("gradient", False),
    ("buffer", "gradient in 32 bits"): ("gradient", True),
    ("optimizer", "master shard"): ("master", True), ("optimizer", "exp_avg"): ("m", True),
    ("optimizer", "momentum_buffer"): ("m", True), ("optimizer", "exp_avg_sq"): ("v", True),
}
FEW = 12  # elements up to which every element of a unit is a cell; else a shard is


@dataclass
class Unit:
    """A unit of `elements`, padding included, cut into `parts` shards; cells begin at `edges`."""

    name: str
    elements: int
    parts: int
    edges: list[int] = field(default_factory=list)
    padding: int = 0

    def own(self, rank: int) -> range:
        """The elements that the rank keeps of what is sharded."""
        length = self.elements // self.parts
        index = rank if self.parts > 1 else 0
        return range(index * length, (index + 1) * length)

    def cells(self, first: int, elements: int) -> list[int]:
        """The cells that begin among these elements."""
        return [k for k, edge in enumerate(self.edges) if first <= edge < first + elements]


@dataclass
class Call:
    """One collective call on a unit: on which stream and between which events of each rank."""

    op: str
    unit: str
    source: tuple[str, int]
    where: dict[int, tuple[str, int, int]] = field(default_factory=dict)

    @property
    def gathers(self) -> bool:
        return "gather" in self.op


def unit_of(text: str) -> tuple[str, str]:
    """("unit 2", "gradients") of "unit 2 gradients"; ("", text) if no unit is named."""
    found = re.fullmatch(r"(unit \d+) ?(.*)", text)
    return found.groups() if found else ("", text)


def calls_of(trace: Trace) -> list[Call]:
    """The collective calls on units, as they come."""
    found: dict[str, Call] = {}
    for (rank, stream), program in trace.programs.items():
        given = [e.source for e in trace.program(rank) if e.event.startswith(f"{stream}:given")]
        for number, (first, last) in enumerate(outermost(program)):
            begin = program[first]
            if unit_of(begin.name)[0]:
                source = begin.source if stream == MAIN else given[number]
                call = found.setdefault(begin.channel, Call(begin.label, begin.name, source))
                call.where[rank] = stream, first, last
    return list(found.values())


def units_in(trace: Trace, sizes: list[int] | None = None) -> dict[str, Unit]:
    """The units that a trace names, in order. `sizes`: their elements, if known without padding."""
    found: dict[str, Unit] = {}
    for call in calls_of(trace):
        rank, (stream, first, _) = next(iter(call.where.items()))
        elements = sum(part[2] for part in trace.programs[rank, stream][first].parts)
        unit = found.setdefault(call.unit, Unit(call.unit, elements, 1))
        if call.gathers or "scatter" in call.op:
            unit.parts = len(call.where)
    found = dict(sorted(found.items(), key=lambda item: int(item[0].split()[1])))
    for i, unit in enumerate(found.values()):
        W, n = trace.world_size, unit.elements
        unit.edges = list(range(n)) if n <= FEW else [r * (n // W) + min(r, n % W)
                                                      for r in range(W)]
        unit.padding = unit.elements - sizes[i] if sizes else 0
    return found


@dataclass
class Moment:
    """An event of a rank, and when it begins and ends on the clock of a timeline."""

    start: float
    end: float
    stream: str
    number: int
    event: Event


def moments(timeline: Timeline) -> dict[int, list[Moment]]:
    """All events of every rank, by time of the clock."""
    spans = {id(span.event): span for span in timeline.spans}
    found: dict[int, list[Moment]] = {rank: [] for rank in range(timeline.world_size)}
    for (rank, stream), program in timeline.trace.programs.items():
        now = 0.0
        for number, event in enumerate(program):
            span = spans.get(id(event))
            start, now = (span.start, span.end) if span else (now, now)
            found[rank].append(Moment(start, now, stream, number, event))
    for mine in found.values():
        mine.sort(key=lambda m: (m.start, m.stream != MAIN, m.stream, m.number))
    return found


def flow_of(timeline: Timeline, call: Call) -> Flow:
    """Whose numbers the messages of one call carry, on the clock of the whole timeline."""
    part = Trace(timeline.world_size)
    for rank, (stream, first, last) in call.where.items():
        part.programs[rank, stream] = timeline.trace.programs[rank, stream][first:last]
    known = {id(e) for program in part.programs.values() for e in program}
    return follow(Timeline(
        timeline.world_size, timeline.machine, trace=part,
        spans=[s for s in timeline.spans if id(s.event) in known],
        messages=[m for m in timeline.messages if id(m.send) in known]))
