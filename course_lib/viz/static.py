"""The static picture of a view: the whole timeline as one SVG, from the data that rows.js plays.

It stands beside the widget for readers without a kernel, so it works as an image: no script, no
outside style, mid-grey text that reads on light and dark. Bars of one meaning are one path, which
keeps it small.
"""

from __future__ import annotations

import base64
import math
import textwrap
from collections import defaultdict
from html import escape

from .static_strips import number, strips
from .theme import FAINT, FONT, STRONG, TEXT

WIDTH = 960
MANY = 400  # more messages than this are drawn without heads, and bars without single letters


def text(x, y, content, size=12, anchor="middle", fill=TEXT, weight="") -> str:
    """One SVG text element; `weight` adds attributes."""
    return (f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}"{weight}>{escape(str(content))}</text>')


def arrow(x1, y1, x2, y2) -> tuple[str, str]:
    """The line and the head of an arrow, as two pieces of path."""
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bx, by = x2 - 7 * ux, y2 - 7 * uy
    corners = [(x2, y2), (bx - 3 * uy, by + 3 * ux), (bx + 3 * uy, by - 3 * ux)]
    return f"M{_at(x1, y1)}L{_at(bx, by)}", f"M{'L'.join(_at(*corner) for corner in corners)}z"


def _at(x: float, y: float) -> str:
    return f"{number(x)} {number(y)}"


def patterns(theme: dict) -> str:
    """Definitions of the hatches of a theme's meanings."""
    tiles = [f'<pattern id="{kind}" width="8" height="8" patternUnits="userSpaceOnUse">'
             f'<rect width="8" height="8" fill="{m["colour"]}"/>'
             f'<path d="{m["hatch"]}" stroke="{m["stroke"]}" stroke-width="1.3" fill="none"/>'
             "</pattern>"
             for kind, m in theme.items() if m["hatch"]]
    return f"<defs>{''.join(tiles)}</defs>" if tiles else ""


def svg(width: float, height: float, parts: list[str], label: str) -> str:
    """A complete SVG document."""
    w, h = number(width), number(height)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" '
            f'width="{w}" height="{h}" font-family="{escape(FONT)}" '
            f'role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>')


def image(picture: str, label: str, name: str = "", width: float = WIDTH) -> str:
    """The SVG as an HTML image. An untrusted notebook shows an image, but strips inline SVG."""
    source = base64.b64encode(picture.encode()).decode()
    mark = f' data-lockstep="{name}" class="lockstep-still"' if name else ""
    return (f'<div{mark}><img style="width:100%;max-width:{number(width)}px" alt="{escape(label)}" '
            f'src="data:image/svg+xml;base64,{source}"></div>')


class Picture:
    """Layout and drawing of one view's data. `svg()` returns the document."""

    def __init__(self, data: dict, width: float = WIDTH):
        self.data, self.look, self.theme, self.width = data, data["look"], data["theme"], width
        names = [row for panel in data["panels"] for row in panel["rows"]]
        self.many = sum(len(panel["messages"]) for panel in data["panels"]) > MANY
        self.left = min(190, 20 + 7.4 * max(map(len, names)))
        self.end = data["clock"]["end"] or 1.0
        self.room = self.look.get("room", 8)
        self.on = {"messages": True, "strips": False} | data.get("on", {})
        y, self.rows, self.titles = 34, [], []
        for panel in data["panels"]:
            if panel["title"]:
                self.titles.append((y + 16, panel["title"]))
                y += self.look["title"]
            held = self.look["strip"] + 4 if self.on["strips"] and panel["strips"] else 0
            step = self.look["row"] + held + self.look["gap"]
            self.rows.append([y + i * step for i in range(len(panel["rows"]))])
            y += step * len(panel["rows"])
        self.bottom = y

    def x(self, seconds: float) -> float:
        """The horizontal place of a time."""
        pad = self.look["pad"]
        return self.left + pad + seconds / self.end * (self.width - self.left - 2 * pad)

    def svg(self) -> str:
        """The document: title, axis, rows, bars, arrows, legend."""
        title = text(0, 16, self.data["summary"], 13, "start", TEXT, ' font-weight="600"')
        titles = [text(0, y, t, 12, "start", TEXT, ' font-weight="600"') for y, t in self.titles]
        legend, height = self._legend()
        parts = [patterns(self.theme), title, *titles, self._axis(), self._names(), *self._bars(),
                 *strips(self), self._arrows(), legend]
        for note in self.data.get("notes", []):
            for line in textwrap.wrap(note, int(self.width / 6.2)):
                parts.append(text(0, height + 8, line, 11, "start"))
                height += 16
        return svg(self.width, height, parts, self.data["summary"])

    def _axis(self) -> str:
        scale, unit = self.data["clock"]["scale"], self.data["clock"]["unit"]
        step, last, grid, labels = tick_step(self.end * scale, 9), 0, [], []
        for i in range(int(self.end * scale * 1.0001 / step) + 1):
            x, last = self.x(i * step / scale), i * step
            grid.append(f"M{number(x)} 30V{number(self.bottom - 4)}")
            more = last + step > self.end * scale * 1.0001
            anchor = "start" if i == 0 else "end" if x > self.width - 30 else "middle"
            label = f"{last:.6g}" + (f" {unit}" if more else "")
            labels.append(text(x, self.bottom + 12, label, 11, anchor))
        return f'<path d="{"".join(grid)}" stroke="{FAINT}" fill="none"/>' + "".join(labels)

    def _names(self) -> str:
        row, found, track = self.look["row"], [], []
        for panel, tops in zip(self.data["panels"], self.rows, strict=True):
            for name, y in zip(panel["rows"], tops, strict=True):
                found.append(text(self.left - 6, y + row / 2 + 4, name, 12, "end"))
                x = self.x(0)
                track.append(f"M{number(x)} {y}H{number(self.x(self.end))}v{row}H{number(x)}z")
        return f'<path d="{"".join(track)}" fill="{FAINT}"/>' + "".join(found)

    def _bars(self):
        paths, labels, half = defaultdict(list), defaultdict(list), self.look["row"] / 2
        for panel, tops in zip(self.data["panels"], self.rows, strict=True):
            for row, start, end, kind, label, part in panel["bars"]:
                x, width = self.x(start), max(0.6, self.x(end) - self.x(start))
                inset = min(0.75, width / 4)
                y = tops[row] + (half + 0.5 if part == 2 else 0)
                height = half - 0.5 if part else self.look["row"]
                paths[kind].append(f"M{number(x + inset)} {number(y)}h{number(width - 2 * inset)}"
                                   f"v{number(height)}h{number(2 * inset - width)}z")
                if found := self._label(width, height, kind, label):
                    words, size = found
                    middle = _at(x + width / 2, y + height / 2 + size * 0.36).replace(" ", '" y="')
                    labels[size, self.theme[kind]["ink"]].append(
                        f'<text x="{middle}">{escape(words)}</text>')
        for kind, pieces in paths.items():
            fill = f"url(#{kind})" if self.theme[kind]["hatch"] else self.theme[kind]["colour"]
            yield f'<path d="{"".join(pieces)}" fill="{fill}"/>'
        for (size, ink), texts in labels.items():
            yield f'<g font-size="{size}" fill="{ink}" text-anchor="middle">{"".join(texts)}</g>'

    def _label(self, width, height, kind, label) -> tuple[str, int] | None:
        """The longest text that fits into a bar, and its size."""
        size, letter = 11 if height < 20 else 12, "" if self.many else self.theme[kind]["letter"]
        short = "wait" if kind == "wait" else letter
        fits = [t for t in (label, short, letter) if t and len(t) * size * 0.6 + self.room < width]
        return (fits[0], size) if fits else None

    def _arrows(self) -> str:
        if not self.on["messages"]:
            return ""
        lines, heads, row = [], [], self.look["row"]
        for panel, tops in zip(self.data["panels"], self.rows, strict=True):
            for src, dst, start, end in panel["messages"]:
                down = dst > src
                line, head = arrow(self.x(start), tops[src] + (row if down else 0),
                                   self.x(end), tops[dst] + (0 if down else row))
                lines.append(line)
                heads.append(head)
        if self.many:
            heads = []
        return (f'<g opacity="{0.3 if self.many else 0.8}">'
                f'<path d="{"".join(lines)}" stroke="{TEXT}" fill="none"/>'
                f'<path d="{"".join(heads)}" fill="{TEXT}"/></g>') if lines else ""

    def _legend(self) -> tuple[str, float]:
        """The legend below the axis, and the height of the whole picture."""
        shown = {bar[3] for panel in self.data["panels"] for bar in panel["bars"]} | {"idle"}
        if self.on["strips"]:
            shown = set(self.theme)
        x, y, parts = self.left, self.bottom + 30, []
        for kind, m in self.theme.items():
            if kind not in shown:
                continue
            width = 44 + 7 * len(m["name"])
            if x + width > self.width:
                x, y = self.left, y + 22
            fill = f"url(#{kind})" if m["hatch"] else m["colour"]
            parts.append(f'<rect x="{number(x)}" y="{number(y)}" width="18" height="14" rx="3" '
                         f'fill="{fill}"/>')
            if m["letter"] and kind != "wait":
                parts.append(text(x + 9, y + 11, m["letter"], 10, fill=m["ink"]))
            parts.append(text(x + 24, y + 11, m["name"], 12, "start"))
            x += width
        return "".join(parts), y + 22


def tick_step(span: float, most: int) -> float:
    """A round step (1, 2 or 5 times a power of ten) that cuts `span` into at most `most` parts."""
    if span <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= span / most * 0.999)


def wheel(cx: float, cy: float, radius: float, count: int) -> list[tuple[float, float]]:
    """`count` points on a circle, the first on top, clockwise."""
    angles = [2 * math.pi * i / count - math.pi / 2 for i in range(count)]
    return [(cx + radius * math.cos(a), cy + radius * math.sin(a)) for a in angles]


__all__ = ["Picture", "STRONG", "arrow", "image", "number", "svg", "text", "tick_step", "wheel"]
