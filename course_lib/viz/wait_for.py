"""The wait-for picture: ranks on a circle, an arrow to each rank waited for, the cycle strong."""

from __future__ import annotations

import math

from .static import arrow, image, number, patterns, svg, text, wheel
from .theme import DARK, STRONG, TEXT, WHITE, legend

RADIUS = 20  # of a rank, in pixels


def cycle_of(edges) -> list[int]:
    """The ranks of the first cycle that the edges (source, destination, text) close, or none."""
    onward = {}
    for source, destination, *_ in edges:
        onward.setdefault(source, []).append(destination)
    for start in sorted(onward):
        path, stack = {start: None}, [start]
        while stack:
            rank = stack.pop()
            for other in onward.get(rank, ()):
                if other == start:
                    found = [rank]
                    while path[found[-1]] is not None:
                        found.append(path[found[-1]])
                    return found[::-1]
                if other not in path:
                    path[other] = rank
                    stack.append(other)
    return []


class WaitFor:
    """A picture of who waits for whom, with a text form. Made by `wait_for`."""

    def __init__(self, graph: dict):
        self.world_size, self.notes = graph["world_size"], dict(graph.get("notes") or {})
        self.edges = [tuple(edge) for edge in graph["edges"]]
        bad = [e for e in self.edges if not all(0 <= r < self.world_size for r in e[:2])]
        if bad:
            raise ValueError(f"edges: {bad[0][:2]} is not between ranks 0..{self.world_size - 1}")
        self.cycle = cycle_of(self.edges)
        # Many ranks: only those that the story is about
        named = {r for e in self.edges for r in e[:2]} | set(self.notes)
        self.ranks = sorted(named) if self.world_size > 12 and named else range(self.world_size)

    def __repr__(self) -> str:
        head = f"Who waits for whom, {self.world_size} ranks"
        ring = self.cycle + self.cycle[:1]
        lines = [head + (": a cycle " + " -> ".join(map(str, ring)) if ring else ": no cycle")]
        lines += [f"  rank {a} -> rank {b}: {what}" for a, b, what in self.edges]
        done = sorted(set(self.notes) - {edge[0] for edge in self.edges})
        lines += [f"  rank {rank}: {self.notes[rank]}" for rank in done]
        return "\n".join(lines)

    def still(self) -> str:
        """The picture, as SVG."""
        count = len(self.ranks)
        radius = max(80.0, count * 26 / math.pi) if count > 1 else 0.0
        told = [self._words(rank)[0] for rank in self.ranks]
        room, cy = 20 + 6.6 * min(60, max(map(len, told))), radius + RADIUS + 24
        width, height = 2 * (radius + RADIUS + room), 2 * cy + 26
        at = dict(zip(self.ranks, wheel(width / 2, cy, radius, count), strict=True))
        ring = set(zip(self.cycle, self.cycle[1:] + self.cycle[:1], strict=True))
        parts = [patterns(legend({"wait"}))]
        parts += [self._edge(at, edge, edge[:2] in ring) for edge in self.edges]
        parts += [self._rank(rank, *at[rank], width / 2, cy) for rank in self.ranks]
        caption = ("cycle " + " → ".join(map(str, self.cycle + self.cycle[:1])) if self.cycle
                   else "no cycle: the chain ends at a rank that no longer answers")
        parts.append(text(width / 2, height - 6, caption, 13, fill=STRONG if self.cycle else TEXT))
        return svg(width, height, parts, repr(self).partition("\n")[0])

    def _edge(self, at, edge, strong: bool) -> str:
        (x1, y1), (x2, y2) = at[edge[0]], at[edge[1]]
        length = math.hypot(x2 - x1, y2 - y1) or 1.0
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        shift = 7 if any(e[:2] == edge[1::-1] for e in self.edges) else 0  # both ways: side by side
        ends = (x1 + RADIUS * ux - shift * uy, y1 + RADIUS * uy + shift * ux,
                x2 - (RADIUS + 2) * ux - shift * uy, y2 - (RADIUS + 2) * uy + shift * ux)
        line, head = arrow(*ends)
        colour, size = (STRONG, 3) if strong else (TEXT, 1.5)
        return (f'<path d="{line}" stroke="{colour}" stroke-width="{size}"/>'
                f'<path d="{head}" fill="{colour}" stroke="{colour}" stroke-width="{size}"/>')

    def _words(self, rank: int) -> list[str]:
        """What the rank waits for, or else what is noted about it."""
        waits = [what for source, _, what in self.edges if source == rank]
        return waits or [self.notes.get(rank, "")]

    def _rank(self, rank: int, x: float, y: float, cx: float, cy: float) -> str:
        """The rank's disc, and beside it, away from the middle, what it waits for or has done."""
        waits, lines = any(edge[0] == rank for edge in self.edges), self._words(rank)
        fill, ink = ("#56b4e9", DARK) if waits else ("none", TEXT)
        if rank in self.cycle:
            fill, ink = STRONG, WHITE
        dash = "" if waits else ' stroke-dasharray="4 3"'
        disc = (f'<circle cx="{number(x)}" cy="{number(y)}" r="{RADIUS}" fill="{fill}" '
                f'stroke="{TEXT}"{dash}/>' + text(x, y + 5, rank, 14, fill=ink))
        if abs(x - cx) < 1 and len(self.ranks) > 1:  # above or below the circle
            first, step = (y - RADIUS - 8, -15) if y < cy else (y + RADIUS + 18, 15)
            return disc + "".join(text(x, first + step * i, line) for i, line in enumerate(lines))
        side = 1 if x >= cx else -1
        anchor = "start" if side > 0 else "end"
        top = y + 4 - 7.5 * (len(lines) - 1)
        return disc + "".join(text(x + side * (RADIUS + 8), top + 15 * i, line, anchor=anchor)
                              for i, line in enumerate(lines))

    def _repr_mimebundle_(self, **_) -> dict:
        picture = self.still()
        width = float(picture.partition('width="')[2].partition('"')[0])
        return {"text/html": image(picture, repr(self).partition("\n")[0], width=width),
                "text/plain": repr(self)}


def wait_for(graph: dict) -> WaitFor:
    """The picture of {"world_size", "edges": [(from, to, text)], "notes": {rank: text}}."""
    return WaitFor(graph)
