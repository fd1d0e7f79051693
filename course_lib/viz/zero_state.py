"""What every rank holds of every unit, and what travels: a ZeRO run as cells of the engine.

A cell of parameters, master weights or moments carries the number of updates that it contains; a
cell of gradients has one stripe per rank whose gradient is in its sum.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict

from ..timeline import Timeline
from ..trace import Trace
from .cells import Cell, Lane, Stage
from .flow import Flight, Flow
from .zero_trace import HOLDS, LANES, Call, Unit, calls_of, flow_of, moments, unit_of, units_in

UPDATE = "optimizer"  # the label of the computation that updates the shards


class Plan:
    """Where the cells of one or more runs' units stand: in lanes, a row per unit in each."""

    def __init__(self, runs: list[dict[str, Unit]], lanes: list[str]):
        self.names, self.lanes = list(runs[0]), lanes
        self.across = max(len(unit.edges) for units in runs for unit in units.values())

    def drawn(self) -> list[Lane]:
        """The lanes for a Stage."""
        names = tuple(name for name in self.names for _ in range(self.across))
        return [Lane(LANES[lane], names, across=self.across) for lane in self.lanes]

    def slot(self, lane: str, unit: str, cell: int) -> int:
        row = self.lanes.index(lane) * len(self.names) + self.names.index(unit)
        return row * self.across + cell


class Rank:
    """What one rank holds at the moment that has been reached."""

    def __init__(self, rank: int, world_size: int, units: dict[str, Unit]):
        self.rank, self.units, self.all = rank, units, tuple(range(world_size))
        self.held: dict[tuple, Counter] = defaultdict(Counter)  # (unit, lane) -> kinds held
        self.sums: dict[str, list[tuple]] = defaultdict(list)  # unit -> (first, elements, ranks)
        self.weights = {name: [None] * len(unit.edges) for name, unit in units.items()}
        self.updates = 0

    def hold(self, event) -> None:
        """An alloc or a free of what a unit is held in."""
        unit, rest = unit_of(event.label)
        if unit not in self.units or (event.category, rest) not in HOLDS:
            return
        lane, own = HOLDS[event.category, rest]
        kinds = self.held[unit, lane]
        kinds[own, event.category] += 1 if event.kind == "alloc" else -1
        if lane == "parameter":
            mine = self.units[unit].own(self.rank)
            for cell, edge in enumerate(self.units[unit].edges):
                if not kinds[False, "parameter"] and not (kinds[True, "parameter"]
                                                          and edge in mine):
                    self.weights[unit][cell] = None
                elif self.weights[unit][cell] is None and edge in mine:
                    self.weights[unit][cell] = self.updates

    def update(self) -> None:
        """The rank's own shards contain one more update."""
        self.updates += 1
        for name, unit in self.units.items():
            own = unit.own(self.rank)
            for cell in unit.cells(own.start, len(own)):
                if self.weights[name][cell] is not None:
                    self.weights[name][cell] = self.updates

    def arrive(self, unit: str, cells: list[int], version: int) -> None:
        """Parameters have come."""
        for cell in cells:
            self.weights[unit][cell] = version

    def look(self, lane: str, name: str, cell: int) -> Cell | None:
        """What the lane shows of a unit's cell."""
        unit = self.units[name]
        edge, kinds = unit.edges[cell], self.held[name, lane]
        mine = edge in unit.own(self.rank)
        pad = "–" if edge >= unit.elements - unit.padding else ""
        if lane == "parameter":
            version = self.weights[name][cell]
            return None if version is None else Cell(pad or str(version), "parameter")
        if lane != "gradient":
            held = mine and kinds[True, "optimizer"]
            return Cell(pad or str(self.updates), "optimizer") if held else None
        sums = [ranks for first, elements, ranks in self.sums[name]
                if first <= edge < first + elements]
        W = len(self.all)
        if sums:
            return Cell(pad, "buffer", W, max(sums, key=len))
        for own, kind in ((True, "gradient"), (True, "buffer"), (False, "buffer"),
                          (False, "gradient")):
            if kinds[own, kind] and (mine or not own):
                return Cell(pad, kind, W, self.all if own else (self.rank,))
        return None


def updates(program) -> list:
    """The computations that end an update of the shards, in order."""
    found, going = [], False
    for e in program:
        if e.kind == "compute" and e.label == UPDATE:
            found[-1 if going else len(found):] = [e]
            going = True
        elif e.kind not in ("alloc", "free"):
            going = False
    return found


class Shards:
    """One run's step on a clock: puts what its ranks hold, and what they send, on a stage."""

    def __init__(self, timeline: Timeline, before: Trace, sizes: list[int] | None = None):
        self.timeline, self.before, self.W = timeline, before, timeline.world_size
        self.units = units_in(timeline.trace, sizes)
        self.moments = moments(timeline)
        self.flows = [(call, flow_of(timeline, call)) for call in calls_of(timeline.trace)]
        self.earlier = {rank: len(updates(before.program(rank))) for rank in range(self.W)}
        self.updated = {}  # rank -> times at which its shards have been updated
        for rank, mine in self.moments.items():
            last = {id(e) for e in updates([m.event for m in mine])}
            self.updated[rank] = [m.end for m in mine if id(m.event) in last]

    def lanes(self) -> list[str]:
        """The lanes that something is held in."""
        seen = {HOLDS.get((e.category, unit_of(e.label)[1]), ("",))[0]
                for trace in (self.before, self.timeline.trace)
                for program in trace.programs.values() for e in program if e.kind == "alloc"}
        return [lane for lane in LANES if lane in seen]

    def version(self, rank: int, time: float) -> int:
        """How many updates the rank's shards contain at a time."""
        return self.earlier[rank] + bisect_right(self.updated[rank], time)

    def put_on(self, stage: Stage, plan: Plan, first: int = 0) -> None:
        """Draw the run; its rank r is the place first + r."""
        for r in range(self.W):
            rank = self._begin(r)
            for time, about, change in [(0.0, "", lambda _: None), *self._changes(r)]:
                change(rank)
                for lane in plan.lanes:
                    for name in [about] if about else self.units:
                        for cell in range(len(self.units[name].edges)):
                            spot = first + r, plan.slot(lane, name, cell)
                            stage.put(time, spot, rank.look(lane, name, cell))
        for call, flow in self.flows:
            for flight in flow.flights:
                self._fly(stage, plan, call, flight, first)

    def _begin(self, r: int) -> Rank:
        """What the rank holds before the step."""
        rank = Rank(r, self.W, self.units)
        for event in self.before.program(r):
            if event.kind in ("alloc", "free"):
                rank.hold(event)
        for _ in range(self.earlier[r]):
            rank.update()
        for name, unit in self.units.items():
            if rank.held[name, "parameter"][False, "parameter"]:
                rank.weights[name] = [rank.updates] * len(unit.edges)
        return rank

    def _changes(self, r: int) -> list[tuple]:
        """(time, unit or all, change) of a rank, in order; what comes, before what becomes of it.
        """
        found = []
        for call, flow in self.flows:
            found += self._arrivals(r, call, flow) if call.gathers else self._sums(r, call, flow)
        for m in self.moments[r]:
            unit, rest = unit_of(m.event.label)
            known = unit in self.units and (m.event.category, rest) in HOLDS
            if known and m.event.kind in ("alloc", "free"):
                found.append((m.start, unit, lambda rank, e=m.event: rank.hold(e)))
        found += [(time, "", Rank.update) for time in self.updated[r]]
        return sorted(found, key=lambda change: change[0])

    def _arrivals(self, r: int, call: Call, flow: Flow):
        for flight in flow.flights:
            m = flight.message
            if m.dst == r:
                cells = [k for n, holds in flight.pieces
                         for k in self.units[call.unit].cells(holds[0][1], n)]
                version = self.version(m.src, m.start)
                yield m.end, call.unit, (
                    lambda rank, cells=cells, v=version: rank.arrive(call.unit, cells, v))

    def _sums(self, r: int, call: Call, flow: Flow):
        """Sums on their way are in scratch memory until they are last read, or in the tensor."""
        stream, _, last = call.where.get(r, ("", 0, 0))
        over = max((m.end for m in self.moments[r] if m.stream == stream and m.number < last),
                   default=0.0)
        for piece in flow.pieces:
            if piece.rank == r and piece.written:
                home = any(piece.buffer == buffer for buffer, _, _ in flow.given.get(r, ()))
                until = min(piece.until, over) if home else min(piece.until, piece.used, over)
                ranks = tuple(sorted({rank for rank, _ in piece.holds}))
                item = piece.holds[0][1], piece.elements, ranks
                if until > piece.since:
                    yield piece.since, call.unit, (
                        lambda rank, item=item: rank.sums[call.unit].append(item))
                    yield until, call.unit, (
                        lambda rank, item=item: rank.sums[call.unit].remove(item))

    def _fly(self, stage: Stage, plan: Plan, call: Call, flight: Flight, first: int) -> None:
        m, unit = flight.message, self.units[call.unit]
        for elements, holds in flight.pieces:
            ranks = tuple(sorted({rank for rank, _ in holds}))
            lane = "parameter" if call.gathers else "gradient"
            cell = (Cell(str(self.version(m.src, m.start)), "parameter") if call.gathers
                    else Cell("", "buffer", self.W, ranks))
            for k in unit.cells(holds[0][1], elements):
                slot = plan.slot(lane, call.unit, k)
                stage.fly(m.start, m.end, (first + m.src, slot), (first + m.dst, slot), cell)
