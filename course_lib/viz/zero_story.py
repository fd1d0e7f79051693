"""The story of a ZeRO step: one sentence and one line of code for each instant that matters."""

from __future__ import annotations

import inspect
import linecache
import os
from collections import defaultdict
from functools import cache
from pathlib import Path

from ..zero import update_shards
from ..zero_units import Gathered, Unit
from .rows import count_text
from .zero_runs import train
from .zero_state import UPDATE, Shards
from .zero_trace import unit_of

WHERE = {  # what no call made, and the line that does it
    "forward": (train, "loss = loss_of("), "backward": (train, "loss.backward()"),
    UPDATE: (update_shards, "optimizer.step()"), "drop": (Unit.take_gradients, ".grad = None"),
    "release": (Gathered.release, ".resize_(0)"), "room": (Gathered.start, ".resize_(nbytes)"),
}
OWN = "gradient shard"
PHASES = {"forward": "runs its forward pass", "backward": "runs its backward pass",
          UPDATE: "updates what it keeps of master weights, m and v"}


@cache
def line_of(what: str) -> tuple[str, int]:
    """File and line of an entry of WHERE."""
    function, text = WHERE[what]
    lines, first = inspect.getsourcelines(function)
    number = next(i for i, line in enumerate(lines) if text in line)
    return inspect.getsourcefile(function), first + number


def code_text(line: tuple[str, int]) -> str:
    """"zero.py:41   self.optimizer.step()"; nothing for a line outside the library."""
    file, number = line
    path = _library().get(os.path.basename(file))
    return f"{path.name}:{number}   {linecache.getline(str(path), number).strip()}" if path else ""


@cache
def _library() -> dict[str, Path]:
    """The library's files by name, which is all that a trace knows; strategies before others."""
    top = Path(__file__).parents[1]
    return {path.name: path for path in [*top.glob("*/*.py"), *top.glob("*.py")]}


def story(shards: Shards) -> list[tuple[float, str, str]]:
    """(time, sentence, line of code), in order."""
    found: dict[float, list[tuple[str, int, tuple]]] = defaultdict(list)
    for time, text, line in _messages(shards):
        found[time].append((text, -1, line))
    for rank, mine in shards.moments.items():
        for time, text, line in _rank(mine):
            found[time].append((text, rank, line))
    return [(time, _sentence(told, shards.W), code_text(told[0][2]))
            for time, told in sorted(found.items())]


def _sentence(told: list[tuple[str, int, tuple]], world_size: int) -> str:
    """The messages first, then what ranks do by themselves, each once."""
    who: dict[str, list[int]] = {}
    for text, rank, _ in told:
        ranks = who.setdefault(text, [])
        if rank not in ranks:
            ranks.append(rank)
    parts = []
    for text, ranks in who.items():
        subject = ("" if ranks == [-1] else "every rank " if len(ranks) == world_size else
                   f"rank {ranks[0]} " if len(ranks) == 1 else
                   f"each of ranks {', '.join(map(str, sorted(ranks)))} ")
        parts.append(subject + text)
    return "; ".join(parts)


def _messages(shards: Shards):
    """What travels: the first message of a call at an instant in words, the others counted."""
    for call, flow in shards.flows:
        starts = defaultdict(list)
        for flight in flow.flights:
            starts[flight.message.start].append(flight)
        for time, leaving in starts.items():
            flight = min(leaving, key=lambda f: (f.message.src, f.message.dst))
            m, (_, holds) = flight.message, flight.pieces[0]
            unit = shards.units[call.unit]
            cells = unit.cells(holds[0][1], sum(n for n, _ in flight.pieces))
            noun = "element" if unit.edges == list(range(unit.elements)) else "shard"
            what = f"{noun} {cells[0]}" if len(cells) == 1 else f"{noun}s {cells[0]} to {cells[-1]}"
            added = "" if call.gathers else f" ({len(holds)} of {shards.W} added)"
            more = count_text(len(leaving) - 1, "message")
            op = call.op.removeprefix("ring_").removesuffix("_into").replace("_", "-")
            yield time, (f"{op} of {call.unit}: rank {m.src} sends {what}{added} to rank {m.dst}"
                         + (f", {more} more likewise" if len(leaving) > 1 else "")), call.source


def _rank(mine):
    """What one rank does by itself: phases, gradients that appear, memory that goes."""
    doing, grown = "", set()
    for m, after in zip(mine, [*mine[1:], mine[-1]]):
        e, (unit, rest) = m.event, unit_of(m.event.label)
        if e.kind == "compute" and e.label in PHASES:
            if e.label != doing:
                yield m.start, PHASES[e.label], line_of(e.label)
            doing = e.label
        elif e.kind in ("begin", "wait"):
            doing = ""
        elif e.kind == "alloc" and rest == "full gradient" and unit not in grown:
            grown.add(unit)
            yield m.start, f"has the gradients of {unit}", line_of("backward")
        elif e.kind == "free" and rest == "full gradient" and unit in grown:
            grown.discard(unit)
            yield m.start, f"lays the gradients of {unit} end to end", line_of("drop")
        elif e.kind == "free" and rest == "gradients" and after.event.label != f"{unit} {OWN}":
            yield m.start, f"frees the whole gradients of {unit}", line_of("drop")
        elif e.kind == "free" and unit and not rest and e.category == "parameter":
            yield m.start, f"frees {unit}, all but its own shard", line_of("release")
