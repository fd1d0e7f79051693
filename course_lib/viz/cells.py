"""The data of the "cells that travel" engine: what cells.js plays and cells_still.py draws.

A picture has *places* (ranks, say), and every place has the same *slots*, in *lanes*. A slot holds
one cell or none. A cell is a label, a kind (its fill, by meaning), and, for a partial sum, which of
how many ranks' contributions it contains: it is drawn as one stripe per rank.

  cells: {
    places:  [{name, status: [[time, kind, text]]}],      beside the name, from that time on
    arrange: "columns" or "ring",                         how the places stand at first
    ring:    whether there is a switch between the two
    lanes:   [{name, slots: [label], sizes: [number], across}],     `across` slots in a row
    looks:   [[label, kind, of, [has]]],                  of = 0: a plain cell without stripes
    changes: [[time, place, slot, look]],                 from that time on; look -1: empty
    flights: [[start, end, place, slot, place, slot, look]],
    meters:  [{name, unit, most, smooth, series: [per place [[time, {kind: amount}]]]}],
    code:    [line],                                      per step of the player, if there are any
    theme:   {kind: ...} as in rows.js, in legend order }

Slots are numbered through all lanes. Everything is sorted by time; changes at one time are applied
in order, before the flights of that time start. A `Stage` writes these lists from verbs:

  put       a cell is there from now on: it is created, or takes the other one's place (recolour)
  free      the slot is empty
  copy      a cell travels and is in the target when it arrives; the source keeps its own
  move      likewise, and the source is empty from the start on
  merge     likewise as copy, and the target's cell then contains both contributions
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from .theme import MEANINGS, STATES

MAX_SLOTS = 96
MAX_FLIGHTS = 4_000


@dataclass(frozen=True)
class Cell:
    """What a slot holds. has: the ranks whose contributions are in it, of `of` (0: not a sum)."""

    label: str = ""
    kind: str = "part"
    of: int = 0
    has: tuple[int, ...] = ()

    def plus(self, other: Cell) -> Cell:
        """The sum of both; `whole` once every rank's contribution is in it."""
        has = tuple(sorted({*self.has, *other.has}))
        return Cell(self.label, "whole" if self.of and len(has) == self.of else self.kind, self.of,
                    has)


@dataclass(frozen=True)
class Lane:
    """A group of slots of every place. sizes (elements, bytes) set the relative widths of cells."""

    name: str
    slots: tuple[str, ...]
    sizes: tuple[float, ...] = ()
    across: int = 1


class Stage:
    """Collects what happens; call the verbs in the order of time. A spot is (place, slot)."""

    def __init__(self, places: list[str], lanes: list[Lane], arrange: str = "columns"):
        if arrange not in ("columns", "ring"):
            raise ValueError(f"arrange={arrange!r}: must be columns or ring")
        self.places = [{"name": name, "status": []} for name in places]
        self.lanes, self.arrange, self.ring = lanes, arrange, 2 < len(places) <= 8
        self.looks: dict[Cell, int] = {}
        self.now: dict[tuple[int, int], Cell | None] = {}
        self.changes, self.flights, self.meters, self.code = [], [], [], []
        self.slots = sum(len(lane.slots) for lane in lanes)
        if self.slots > MAX_SLOTS:
            raise ValueError(f"{self.slots} slots: a picture has at most {MAX_SLOTS}; choose fewer "
                             "ranks or segments")

    def look(self, cell: Cell | None) -> int:
        """The number of a cell's appearance."""
        return -1 if cell is None else self.looks.setdefault(cell, len(self.looks))

    def put(self, time: float, spot: tuple[int, int], cell: Cell | None) -> None:
        """From `time` on the spot holds the cell (None: nothing)."""
        place, slot = spot
        if not (0 <= place < len(self.places) and 0 <= slot < self.slots):
            raise ValueError(f"spot={spot}: must be one of {len(self.places)} places and "
                             f"{self.slots} slots")
        if self.now.get(spot) != cell:
            self.changes.append([time, *spot, self.look(cell)])
            self.now[spot] = cell

    def free(self, time: float, spot: tuple[int, int]) -> None:
        """From `time` on the spot is empty."""
        self.put(time, spot, None)

    def fly(self, start: float, end: float, source: tuple[int, int], target: tuple[int, int],
            cell: Cell) -> None:
        """Draw a cell on its way, and change nothing."""
        self.flights.append([start, end, *source, *target, self.look(cell)])

    def copy(self, start: float, end: float, source, target) -> None:
        """The source's cell travels to the target and stays in the source too."""
        cell = self.now[source]
        self.fly(start, end, source, target, cell)
        self.put(end, target, cell)

    def move(self, start: float, end: float, source, target) -> None:
        """The source's cell travels to the target; the source is empty from the start on."""
        cell = self.now[source]
        self.fly(start, end, source, target, cell)
        self.put(start, source, None)
        self.put(end, target, cell)

    def merge(self, start: float, end: float, source, target) -> None:
        """The source's cell travels and is added to the target's."""
        cell, held = self.now[source], self.now.get(target)
        self.fly(start, end, source, target, cell)
        self.put(end, target, cell if held is None else held.plus(cell))

    def meter(self, name: str, unit: str, series: list[list], smooth: bool = True) -> None:
        """A bar under every place: per place [[time, {kind: amount}]], on one scale."""
        most = max((sum(held.values()) for row in series for _, held in row), default=0)
        self.meters.append({"name": name, "unit": unit, "most": most, "smooth": smooth,
                            "series": series})

    def data(self) -> dict:
        """What the engine plays, see above."""
        if len(self.flights) > MAX_FLIGHTS:
            raise ValueError(f"{len(self.flights):,} cells on the way: a page draws at most "
                             f"{MAX_FLIGHTS:,}; choose fewer ranks")
        kinds = {cell.kind for cell in self.looks} | {
            kind for meter in self.meters for row in meter["series"] for _, held in row
            for kind in held if kind in STATES}
        theme = {kind: asdict(m) for kind, m in MEANINGS.items() if kind in kinds}
        lanes = [{"name": lane.name, "slots": list(lane.slots), "across": lane.across,
                  "sizes": list(lane.sizes) or [1] * len(lane.slots)} for lane in self.lanes]
        data = {"places": self.places, "arrange": self.arrange, "ring": self.ring, "lanes": lanes,
                "looks": [[c.label, c.kind, c.of, list(c.has)] for c in self.looks],
                "changes": sorted(self.changes, key=lambda c: c[0]),
                "flights": sorted(self.flights, key=lambda f: f[:2]), "meters": self.meters,
                "theme": theme}
        return data | ({"code": self.code} if self.code else {})


def with_cells(data: dict, stage: Stage) -> dict:
    """The data of a rows view (rows.py) with cells above it, on the same clock."""
    data = {**data, "cells": stage.data()}
    del data["id"]
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return {"id": hashlib.sha256(text.encode()).hexdigest()[:12], **data}


def cells_at(cells: dict, time: float) -> dict[tuple[int, int], list]:
    """The look of every spot that is not empty at a time: {(place, slot): [label, kind, of, has]}.
    """
    held = {}
    for when, place, slot, look in cells["changes"]:
        if when > time:
            break
        held[place, slot] = look
    return {spot: cells["looks"][look] for spot, look in held.items() if look >= 0}
