"""The static picture of a machine: its boxes and wires, and what each direction has carried."""

from __future__ import annotations

from collections import Counter

from .graph_layout import aside
from .rows import bytes_text
from .static import WIDTH, number, svg, text
from .theme import FAINT, TEXT

THIN, WIDE = 1.5, 6.0  # pixels: a direction that carried little, the one that carried most
ARROWS = ("→", "↓", "←", "↑")


def graph_still(data: dict) -> str:
    """The SVG, from the data that graph.js plays."""
    graph, carried = data["graph"], Counter()
    for _, _, nbytes, path in graph["flights"]:
        for d in graph["paths"][path]:
            carried[d] += nbytes
    parts, labels = [], []
    for k, wire in enumerate(graph["wires"]):
        if wire["curve"] is None:
            continue
        parts.append(_line(wire["curve"], FAINT.replace("0.16", "0.45"), 1))
        told = []
        for way in (0, 1):
            if nbytes := carried[2 * k + way]:
                curve = aside(wire["curve"], way)
                parts.append(_line(curve, TEXT, THIN + (WIDE - THIN) * nbytes / graph["most"]))
                told.append(f"{pointing(curve)} {bytes_text(nbytes)}")
        labels += _number(wire, told)
    inside = {wire["ends"][0]: carried[2 * k] for k, wire in enumerate(graph["wires"])
              if wire["curve"] is None}
    boxes = [_box(n, inside.get(i, 0), graph["most"]) for i, n in enumerate(graph["nodes"])]
    y = graph["height"] + 16
    told = [text(0, y, data["summary"], 12, "start"),
            text(0, y + 18, " · ".join(graph["kinds"]), 12, "start")]
    return svg(WIDTH, y + 26, [*parts, *boxes, *labels, *told], data["summary"])


def pointing(curve) -> str:
    """The arrow that points most nearly from the curve's start to its end."""
    x, y = curve[4] - curve[0], curve[5] - curve[1]
    return ARROWS[(0 if x > 0 else 2) if abs(x) > abs(y) else (1 if y > 0 else 3)]


def _line(curve, stroke: str, width: float) -> str:
    x1, y1, cx, cy, x2, y2 = map(number, curve)
    return (f'<path d="M{x1} {y1}Q{cx} {cy} {x2} {y2}" fill="none" stroke="{stroke}" '
            f'stroke-width="{number(width)}"/>')


def _number(wire: dict, told: list[str]):
    """What the directions of a wire have carried, beside it."""
    short = [line.replace(" ", "").replace("iB", "") for line in told]
    fits = next((lines for lines in (told, short) if lines
                 and max(map(len, lines)) * 5.7 <= wire["room"]), [])
    for i, line in enumerate(fits):
        x, y = wire["at"]
        if wire["flat"]:
            yield text(x, y + (-7, 17)[i], line, 11)
        else:
            yield text(x + 6, y + 4 + 13 * (i - (len(told) - 1) / 2), line, 11, "start")


def _box(n: dict, inside: int, most: int) -> str:
    size = 12 if n["h"] > 18 else 9
    width = 1 + (4 * inside / most if inside else 0)
    x, y = number(n["x"] - n["w"] / 2), number(n["y"] - n["h"] / 2)
    name = next((t for t in n["names"] if len(t) * size * 0.58 + 4 < n["w"]), "")
    return (f'<rect x="{x}" y="{y}" width="{number(n["w"])}" height="{number(n["h"])}" rx="5" '
            f'fill="{FAINT}" stroke="{TEXT}" stroke-width="{number(width)}"/>'
            + (text(n["x"], n["y"] + size * 0.36, name, size) if name else ""))
