"""The static picture of a view with cells: what every place holds before, in the middle and at the
end, above the timeline. Drawn from the data that cells.js plays.
"""

from __future__ import annotations

from collections import defaultdict
from html import escape

from .cells import cells_at
from .rows import time_text
from .static import WIDTH, Picture, number, patterns, svg, text
from .theme import FAINT, TEXT

MANY = 100  # more slots than this in a frame are drawn together
NAMES, GAP, TOP = 76, 18, 44  # pixels: labels at the left, between frames, above the first slot


def cells_still(data: dict) -> str:
    """The SVG of three moments and the timeline."""
    cells, steps = data["cells"], data["steps"]
    moments = [("before", -1.0), ("in the middle", steps[len(steps) // 2][0]),
               ("at the end", data["clock"]["end"])]
    lanes, y = [], TOP
    for lane in cells["lanes"]:
        for first in range(0, len(lane["slots"]), lane["across"]):
            lanes.append((y, lane, first))
            y += 26 if len(cells["lanes"][0]["slots"]) <= 8 else 16
        y += 6
    wide = (WIDTH - NAMES - 2 * GAP) / 3
    parts = [patterns(cells["theme"])]
    for top, lane, first in lanes:
        if "code" in cells:  # low rows: the lane says what it is, its place in it which unit
            parts.append(text(0, top + 10, "" if first else lane["name"], 11, "start"))
        else:
            parts.append(text(0, top + 15, lane["slots"][first], 12, "start"))
    for i, (name, time) in enumerate(moments):
        x = NAMES + i * (wide + GAP)
        told = name + (f", {time_text(time, data['clock'])}" if time >= 0 else "")
        parts.append(text(x, 14, told, 12, "start", TEXT, ' font-weight="600"'))
        parts += _frame(cells, cells_at(cells, max(0.0, time)), x, wide, lanes)
    entries, x = [], NAMES
    for kind, m in cells["theme"].items():
        entries.append(f'<rect x="{number(x)}" y="{y + 4}" width="18" height="14" rx="3" '
                       f'fill="{_fill(kind, m)}"/>' + text(x + 24, y + 15, m["name"], 12, "start"))
        x += 44 + 7 * len(m["name"])
    below = Picture(data)
    inner = below.svg().replace("<svg ", f'<svg y="{y + 34}" ', 1)
    height = float(inner.partition('height="')[2].partition('"')[0]) + y + 34
    return svg(WIDTH, height, [*parts, *entries, inner], data["summary"])


def _frame(cells, held, x, wide, lanes):
    """All places at one moment."""
    pitch = wide / len(cells["places"])
    room, boxes = pitch - (8 if pitch > 40 else 3), []
    many = len(cells["places"]) * sum(len(lane["slots"]) for lane in cells["lanes"]) > MANY
    for p, place in enumerate(cells["places"]):
        left = x + p * pitch
        name = place["name"] if pitch > 48 else place["name"].rpartition(" ")[2]
        yield text(left + room / 2, 34, name, 11)
        slot = 0
        for top, lane, first in lanes:
            across = len(lane["slots"][first:first + lane["across"]])
            for k in range(across):
                share = lane["sizes"][first + k] / (max(lane["sizes"]) or 1)
                width = room / lane["across"] * max(0.3, share)
                box = (left + k * room / lane["across"], top, width, 20 if len(lanes) <= 8 else 12)
                if many:
                    boxes.append((box, held.get((p, slot))))
                else:
                    yield _slot(box, held.get((p, slot)), cells["theme"])
                slot += 1
    if many:
        yield from _packed(boxes, cells["theme"])


def _packed(boxes, theme):
    """Many slots, those of one meaning in one path: a notebook stores every picture."""
    tracks, fills, words = [], defaultdict(list), defaultdict(list)
    for (x, y, width, height), look in boxes:
        tracks.append(f"M{number(x)} {y}h{number(width - 1)}v{height}h{number(1 - width)}z")
        if look is not None:
            d, written = _drawn((x, y, width - 1, height), look)
            fills[look[1]].append(d)
            down = number(y + height / 2 + 3)
            words[theme[look[1]]["ink"]] += [
                f'<text x="{number(at)}" y="{down}">{escape(str(word))}</text>'
                for at, word in written]
    yield f'<path d="{"".join(tracks)}" fill="{FAINT}"/>'
    for kind, pieces in fills.items():
        yield f'<path d="{"".join(pieces)}" fill="{_fill(kind, theme[kind])}"/>'
    for ink, texts in words.items():
        yield f'<g font-size="9" text-anchor="middle" fill="{ink}">{"".join(texts)}</g>'


def _slot(box, look, theme) -> str:
    x, y, width, height = box
    track = (f'<rect x="{number(x)}" y="{y}" width="{number(width)}" height="{height}" rx="3" '
             f'fill="{FAINT}"/>')
    if look is None:
        return track
    m, (d, words) = theme[look[1]], _drawn(box, look)
    return track + f'<path d="{d}" fill="{_fill(look[1], m)}"/>' + "".join(
        text(at, y + height / 2 + 4, word, min(11, height), fill=m["ink"]) for at, word in words)


def _drawn(box, look) -> tuple[str, list[tuple]]:
    """The path of a cell, and its words with where they stand."""
    x, y, width, height = box
    label, kind, of, has = look
    stripe, words = width / (of or 1), []
    inner = 0 if kind == "whole" or not of else 0.5
    d = "".join(f"M{number(x + k * stripe + inner)} {y}h{number(stripe - 2 * inner)}v{height}"
                f"h{number(2 * inner - stripe)}z" for k in (has if of else [0]))
    if label or not of:
        words = [(x + width / 2, label)] if len(label) * 6 < width else []
    elif stripe >= 8:
        words = [(x + (k + 0.5) * stripe, k) for k in has]
    return d, words


def _fill(kind, m) -> str:
    return f"url(#{kind})" if m["hatch"] else m["colour"]
