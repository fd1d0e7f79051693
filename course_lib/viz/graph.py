"""A machine drawn as nodes and wires, and what travels over them in a replay: `topology`.

The data that graph.js plays, beside clock, steps and theme, is `graph`:

- `nodes`: boxes, {names (the longest that fits is shown), kind, x, y, w, h, rank};
- `wires`: {ends: two boxes, curve: x and y of start, bend and end, at: where its number goes, flat:
  above and below it, not beside, room: pixels for it}; wire k has the directions 2k (first end to
  second) and 2k + 1, called `ways[d]`;
- `paths`: lists of directions; `flights`: [start, end, bytes, path] of each message, by start. Very
  many are joined into slots of time, and `slots` is true;
- `most`: bytes of the busiest direction in the end; `kinds`: what the wires are.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import asdict, replace

from ..virtual_time import replay
from . import graph_layout as layout
from .graph_still import graph_still
from .rows import bytes_text, clock, count_text, time_text
from .theme import MEANINGS, TEXT, Meaning
from .view import View, engine

MOST_FLIGHTS = 12_000
NAMED = 3  # messages and links that a sentence names


class GraphView(View):
    """A machine whose wires light up (data: graph.py)."""

    _esm = engine("player.js", "draw.js", "graph.js", plays="new Graph(data)")
    _css = engine("viz.css", "graph.css")

    def still(self) -> str:
        """The static picture, as SVG: the machine, and what each wire has carried in the end."""
        return graph_still(self.data)

    def __repr__(self) -> str:
        return super().__repr__() if self.last else self.data["summary"]


def topology(machine, timeline=None, world_size: int | None = None) -> GraphView:
    """The picture of a machine; with a Timeline, a Run or a Trace on it, its wires light up.

    timeline: of `replay(trace, machine)`; a Run or a Trace is replayed here. world_size: how many
    ranks a machine has that takes any number. ValueError when the Timeline is of another machine.
    """
    if timeline is not None and not hasattr(timeline, "link_bytes"):
        timeline = replay(getattr(timeline, "trace", timeline), machine)
    if timeline is not None and timeline.machine != machine.name:
        raise ValueError(f"timeline: is of {timeline.machine!r}; must be replayed on "
                         f"{machine.name!r}")
    return GraphView(data=graph_data(machine, timeline, world_size))


def graph_data(machine, timeline=None, world_size: int | None = None) -> dict:
    """What graph.js plays."""
    drawn = machine.graph(timeline.world_size if timeline else world_size)
    box = layout.joined(drawn)
    nodes = layout.nodes(drawn, box)
    wires = layout.wires(drawn, box, nodes)
    direction = {link["id"]: 2 * i + way for i, wire in enumerate(wires)
                 for way in (0, 1) for link in wire["links"][way]}
    ranks = sum(n["level"] == 0 for n in drawn["nodes"])
    title = f"{machine.name}, {count_text(ranks, 'rank')}"
    flights, steps, told = _Flights(machine, timeline, direction).all() if timeline else (
        {"paths": [], "flights": [], "slots": False}, [], f"{len(drawn['links']):,} links")
    carried = Counter()
    for _, _, nbytes, path in flights["flights"]:
        for d in flights["paths"][path]:
            carried[d] += nbytes
    how = clock(timeline.makespan if timeline else 0.0)
    if timeline:
        last = f"the last rank has finished, at {time_text(timeline.makespan, how)}; {told}"
        steps = [[0.0, f"start, {count_text(len(timeline.messages), 'message')} to come."], *steps,
                 [timeline.makespan, last]]
    graph = {"nodes": nodes, "wires": [_wire(w, nodes) for w in wires],
             "ways": [_name(w, way, nodes) for w in wires for way in (0, 1)], **flights,
             "most": max(carried.values(), default=0), "kinds": _kinds(drawn),
             "height": round(max(n["y"] + n["h"] for n in nodes) + 6)}
    data = {"title": title, "summary": f"{title}: {told}", "clock": how, "theme": _theme(),
            "steps": steps or [[0.0, told]], "graph": graph}
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return {"id": hashlib.sha256(text.encode()).hexdigest()[:12], **data}


class _Flights:
    """The messages of a timeline as flights along directions, and a sentence for each start."""

    def __init__(self, machine, timeline, direction: dict[str, int]):
        self.timeline, self.routes, self.paths, self.numbers = timeline, {}, [], {}
        for m in timeline.messages:
            if (m.src, m.dst) not in self.routes:
                links = machine.route(m.src, m.dst).path
                path = tuple(dict.fromkeys(direction[name] for name in links))
                self.routes[m.src, m.dst] = links, self.number(path)

    def number(self, path: tuple[int, ...]) -> int:
        """The index of a path in `paths`."""
        if path not in self.numbers:
            self.numbers[path] = len(self.paths)
            self.paths.append(list(path))
        return self.numbers[path]

    def all(self) -> tuple[dict, list, str]:
        """(paths and flights, steps, the summary)."""
        messages = sorted(self.timeline.messages, key=lambda m: (m.start, m.src, m.dst))
        alike = Counter((m.start, m.end, self.routes[m.src, m.dst][1]) for m in messages)
        slots = len(alike) > MOST_FLIGHTS
        flights, steps = self._slots(messages) if slots else self._each(messages)
        return {"paths": self.paths, "flights": flights, "slots": slots}, steps, self._told()

    def _told(self) -> str:
        sent = sum(m.nbytes for m in self.timeline.messages)
        text = f"{count_text(len(self.timeline.messages), 'message')}, {bytes_text(sent)}"
        most = max(self.timeline.link_bytes.values(), default=0)
        if not most:
            return text
        busiest = [k for k, n in self.timeline.link_bytes.items() if n == most]
        also = f" and {len(busiest) - 1} more" if len(busiest) > 1 else ""
        return f"{text}; busiest link {min(busiest, key=_natural)}{also}, {bytes_text(most)}"

    def _each(self, messages) -> tuple[list, list]:
        found, starts = Counter(), defaultdict(list)
        for m in messages:
            found[m.start, m.end, self.routes[m.src, m.dst][1]] += m.nbytes
            starts[float(f"{m.start:.9g}")].append(m)
        flights = [[start, end, nbytes, path] for (start, end, path), nbytes in found.items()]
        return flights, [[group[0].start, self._sentence(group)] for group in starts.values()]

    def _sentence(self, group) -> str:
        links = list(dict.fromkeys(link for m in group for link in self.routes[m.src, m.dst][0]))
        if len(group) == 1:
            m, way = group[0], ", ".join(links) if len(links) <= 6 else f"{len(links)} links"
            return f"rank {m.src} sends {bytes_text(m.nbytes)} to rank {m.dst} over {way}"
        some = ", ".join(f"{m.src} to {m.dst}" for m in group[:NAMED])
        more = f" and {len(group) - NAMED} more" if len(group) > NAMED else ""
        return (f"{len(group)} messages start, {bytes_text(sum(m.nbytes for m in group))}: ranks "
                f"{some}{more}, over {count_text(len(links), 'link')}")

    def _slots(self, messages) -> tuple[list, list]:
        """Equal slots of time: a direction is busy in each slot in which it carries something, and
        has carried a message in the slot in which that ends.
        """
        ways, end = {d for path in self.paths for d in path}, self.timeline.makespan
        count, found, begun = max(2, MOST_FLIGHTS // len(ways)), Counter(), Counter()
        for m in messages:
            first = min(count - 1, int(m.start / end * count))
            last = max(first, min(count - 1, int(m.end / end * count * (1 - 1e-12))))
            begun[first] += 1
            for d in self.paths[self.routes[m.src, m.dst][1]]:
                for slot in range(first, last):
                    found[slot, d] += 0
                found[last, d] += m.nbytes
        flights = [[slot / count * end, (slot + 1) / count * end, nbytes, self.number((d,))]
                   for (slot, d), nbytes in sorted(found.items())]
        busy = Counter(slot for slot, _ in found)
        steps = [[slot / count * end, f"{count_text(begun[slot], 'message')} start in slot "
                  f"{slot + 1} of {count}; {n} of {len(ways)} directions in use carry something"]
                 for slot, n in sorted(busy.items())]
        return flights, steps


def _natural(name: str) -> list:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in name.split()]


def _wire(wire: dict, nodes: list[dict]) -> dict:
    """A wire as the page draws it. Its number stands nearer to a rank, where wires are apart."""
    ends, curve = list(wire["ends"]), wire["curve"]
    if curve is None:
        return {"ends": ends, "curve": None, "at": None, "flat": False, "room": 0}
    a, b = (nodes[i] for i in ends)
    t = 0.3 if a["rank"] and not b["rank"] else 0.7 if b["rank"] and not a["rank"] else 0.5
    x1, y1, cx, cy, x2, y2 = curve
    u = 1 - t
    at = [u * u * p + 2 * u * t * c + t * t * q for p, c, q in ((x1, cx, x2), (y1, cy, y2))]
    flat = a["y"] == b["y"]
    return {"ends": ends, "curve": curve, "at": [round(v, 1) for v in at], "flat": flat,
            "room": round(abs(x2 - x1)) if flat else layout.room(nodes, a, b, at[0])}


def _name(wire: dict, way: int, nodes: list[dict]) -> str:
    links, (a, b) = wire["links"][way], wire["ends"]
    if len(links) == 1:
        return links[0]["id"]
    if a == b:
        return f"inside {nodes[a]['id']}"
    a, b = (nodes[i]["id"] for i in ((a, b), (b, a))[way])
    return f"{a} to {b} ({len(links)} links together)"


def _kinds(drawn: dict) -> list[str]:
    """Each kind of link with its bandwidth."""
    rates = {link["kind"].removesuffix(" wrap"): link["bandwidth"] for link in drawn["links"]}
    return [f"{kind}: {'free' if rate is None else _rate(rate)}" for kind, rate in rates.items()]


def _rate(rate: float) -> str:
    big = [(1e9, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")]
    size, unit = next((p for p in big if rate >= p[0]), big[-1])
    return f"{rate / size:g} {unit} each way"


def _theme() -> dict:
    return {"send": asdict(replace(MEANINGS["send"], name="carries a message now", letter="")),
            "carried": asdict(Meaning("has carried bytes: the more, the wider", TEXT))}
