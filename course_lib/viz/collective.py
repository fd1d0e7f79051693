"""Flow of a collective -> the data of the "cells that travel" engine, its timeline below it."""

from __future__ import annotations

from collections import defaultdict

from .cells import Stage, with_cells
from .flow import follow
from .gauges import bytes_so_far, figures, kind_at, status
from .rows import count_text, document, place
from .slots import Slots
from .timeline_view import timeline_data


def collective_data(timeline, title: str = "") -> dict:
    """The engine's data: who holds what, bytes so far, and the timeline, on one clock."""
    flow = follow(timeline)
    slots, rows, ranks = Slots(flow), timeline_data(timeline), range(timeline.world_size)
    stage = Stage([f"rank {rank}" for rank in ranks], slots.lanes(), traffic(timeline))
    for spot, history in slots.history().items():
        for time, cell in history:
            stage.put(time, spot, cell)
    for flight in flow.flights:
        m = flight.message
        for source, target, holds, _ in slots.ways(flight):
            stage.fly(m.start, m.end, (m.src, source), (m.dst, target), slots.cell(holds))
    for rank, entries in enumerate(status(rows["panels"][0], timeline.world_size)):
        stage.places[rank]["status"] = entries
    for name, end in (("sent", "src"), ("received", "dst")):
        stage.meter(name, "B", [bytes_so_far(timeline, rank, end) for rank in ranks])
    title = title or f"{flow.op or 'messages'} on {count_text(timeline.world_size, 'rank')}"
    data = document(title, f"{title}: {figures(timeline)}", timeline.makespan, rows["panels"],
                    list(_steps(flow, slots, rows)))
    return with_cells(data, stage)


def traffic(timeline) -> str:
    """"ring" if every rank sends to one other, all in one circle; else "columns"."""
    onward = defaultdict(set)
    for m in timeline.messages:
        onward[m.src].add(m.dst)
    at, seen = 0, 0
    while len(onward[at]) == 1 and (at or not seen) and seen < timeline.world_size:
        (at,), seen = onward[at], seen + 1
    return "ring" if at == 0 and 3 <= seen == timeline.world_size <= 5 else "columns"


def _steps(flow, slots, rows):
    """One step per instant at which messages start: what travels, and who waits meanwhile."""
    marks, flights = defaultdict(lambda: ([], [])), defaultdict(list)
    for time, _, _, bars, arrows in rows["steps"][1:-1]:
        if arrows:
            marks[time][0].extend(bars)
            marks[time][1].extend(arrows)
    for flight in flow.flights:
        flights[flight.message.start].append(flight)
    doing = status(rows["panels"][0], flow.timeline.world_size)
    for time, leaving in sorted(flights.items()):
        leaving.sort(key=lambda f: (f.message.src, f.message.dst))
        told = [f"rank {f.message.src} sends {slots.words(f)} to rank {f.message.dst}"
                for f in leaving[:2]]
        more = f"; {len(leaving) - 2} more likewise" if len(leaving) > 2 else ""
        waits = [str(r) for r, entries in enumerate(doing) if kind_at(entries, time) == "wait"]
        idle = f"; waiting: {'rank' if len(waits) == 1 else 'ranks'} {', '.join(waits)}"
        idle = idle if waits else ""
        line = place(leaving[0].message.send)
        yield [time, "; ".join(told) + more + idle + line, 0, *marks[time]]
