"""Where the nodes and wires of a machine's picture stand, in pixels of a page 960 wide.

Up to MANY ranks are drawn one by one. Above that, what belongs to one node (or server, or unit of
leaf switches) is drawn as one box, and its wires as one; a torus keeps its chips, which get small.
"""

from __future__ import annotations

import re
from collections import defaultdict

from .static import WIDTH

MANY, FEWEST = 40, 4  # ranks drawn one by one; boxes below which nothing is joined
BOX = re.compile(r"(?:node|server|laptop|unit) \d+")
TALL = {"chip": 24, "bar": 26}
EDGE, ROOM, OFF = 20, 64, 3.4  # margin; right one of a torus; a direction beside the middle


def joined(graph: dict) -> dict[str, str]:
    """Node of the machine -> name of the box that it is drawn in; itself if drawn alone."""
    ids = [n["id"] for n in graph["nodes"]]
    ranks = [n for n in graph["nodes"] if n["level"] == 0]
    alone = {i: i for i in ids}
    if len(ranks) <= MANY or ranks[0]["kind"] == "tpu":
        return alone
    near = {link["a"]: link["b"] for link in graph["links"] if BOX.match(link["b"])
            and not link["b"].startswith("unit")}
    box = {i: m[0] if (m := BOX.match(near.get(i, i))) else i for i in ids}
    return box if len({box[n["id"]] for n in ranks}) >= FEWEST else alone


def nodes(graph: dict, box: dict[str, str]) -> list[dict]:
    """The boxes to draw: id, names (longest first), kind, x and y of the middle, w and h."""
    members = defaultdict(list)
    for n in graph["nodes"]:
        members[box[n["id"]]].append(n)
    found = [_node(name, group) for name, group in members.items()]
    if any(n["kind"] == "tpu" for n in found):
        return _grid(found)
    return _rows(found, graph, box)


def _node(name: str, group: list[dict]) -> dict:
    ranks = sum(n["level"] == 0 for n in group)
    first = group[0]
    if len(group) > 1:
        what = f"{ranks} GPUs" if ranks else f"{len(group)} leaf switches"
        names = [f"{name}, {what}", name, name.split()[-1]]
    elif ranks:
        number = name.split()[-1]
        place = f" ({first['label']})" if first["kind"] == "tpu" else ""
        names = [name + place, name, number]
    else:
        names = [first["label"], name.split()[-1]]
    below = first["kind"] == "nvswitch"
    return {"id": name, "names": names, "kind": first["kind"] if len(group) == 1 else "box",
            "rank": bool(ranks), "x": sum(n["x"] for n in group) / len(group),
            "row": -1 if below else min(n["level"] for n in group),
            "y": first["y"]}


def _grid(found: list[dict]) -> list[dict]:
    """Chips of a torus, where the machine's own picture has them."""
    left, right = min(n["x"] for n in found), max(n["x"] for n in found)
    rows = max(n["y"] for n in found) + 1
    across = (WIDTH - EDGE - ROOM) / (right - left + 1)
    down = 96 if rows <= 5 else max(34, 480 / rows)
    for n in found:
        n["x"] = EDGE + (n["x"] - left + 0.5) * across
        n["y"] = 30 + (n["y"] + 0.2) * down
        n["w"], n["h"] = min(104, 0.56 * across), min(26, 0.5 * down)
    return found


def _rows(found: list[dict], graph: dict, box: dict[str, str]) -> list[dict]:
    """Ranks in one row, NVSwitches below them, everything else above."""
    left, right = min(n["x"] for n in found), max(n["x"] for n in found)
    ranks = sorted(n["x"] for n in found if n["rank"])
    gap = min((b - a for a, b in zip(ranks, ranks[1:])), default=1)
    across = (WIDTH - 2 * EDGE) / (right - left + gap)
    tops = sorted({n["row"] for n in found}, reverse=True)
    for n in found:
        n["x"] = EDGE + (n["x"] - left + gap / 2) * across
        n["y"] = 24 + tops.index(n["row"]) * 96
    at, reach = {n["id"]: n for n in found}, defaultdict(list)
    for link in graph["links"]:
        a, b = at[box[link["a"]]], at[box[link["b"]]]
        if b["rank"] or not a["rank"] and a["row"] < b["row"]:
            reach[b["id"] if not b["rank"] else a["id"]].append((a if not b["rank"] else b)["x"])
    for n in found:
        same = [abs(o["x"] - n["x"]) for o in found if o["row"] == n["row"] and o is not n]
        room = min([*(0.86 * apart for apart in same), 2 * min(n["x"], WIDTH - n["x"]) - 8])
        xs = reach[n["id"]] or [n["x"]]
        wanted = 84 if n["rank"] else max(max(xs) - min(xs) + 40, 90)
        n["w"], n["h"] = min(room, wanted), TALL["chip" if n["rank"] else "bar"]
    return found


def wires(graph: dict, box: dict[str, str], places: list[dict]) -> list[dict]:
    """Wires between boxes: both ends, the links in each direction, points of the curve, and where
    its number goes. A wire inside a box has its box at both ends and no points.
    """
    at, found = {n["id"]: i for i, n in enumerate(places)}, {}
    for link in graph["links"]:
        a, b = at[box[link["a"]]], at[box[link["b"]]]
        key = (min(a, b), max(a, b), link["kind"] if a != b else "")
        wire = found.setdefault(key, {"ends": key[:2], "links": ([], [])})
        wire["links"][int(a > b)].append(link)
    for (a, b, kind), wire in found.items():
        wire["curve"] = _curve(places[a], places[b], kind) if a != b else None
    return list(found.values())


def _curve(a: dict, b: dict, kind: str) -> list[float]:
    """x and y of the start, of the point that bends it, and of the end."""
    (x1, y1), (x2, y2) = (a["x"], a["y"]), (b["x"], b["y"])
    if a["kind"] == "tpu":
        far = "wrap" in kind
        flat, up = y1 == y2, x1 == x2
        bend = (0, -0.62 * (a["h"] + 22)) if flat and far else (
            a["w"] * 0.5 + 26, 0) if up and far else (0, 0) if flat or up else (
            0, -70 if far else -24)
        middle = ((x1 + x2) / 2 + 2 * bend[0], (y1 + y2) / 2 + 2 * bend[1])
    else:
        if y1 != y2 and a["w"] >= b["w"]:
            x1 = _within(x2, a)
        elif y1 != y2:
            x2 = _within(x1, b)
        middle = ((x1 + x2) / 2, (y1 + y2) / 2)
    start, end = _trim((x1, y1), middle, a), _trim((x2, y2), middle, b)
    return [round(v, 1) for v in (*start, *middle, *end)]


def _within(x: float, n: dict) -> float:
    half = max(0.0, n["w"] / 2 - 8)
    return min(max(x, n["x"] - half), n["x"] + half)


def _trim(p, towards, n: dict) -> tuple[float, float]:
    """The point where the line from p leaves the box."""
    dx, dy = towards[0] - p[0], towards[1] - p[1]
    room = n["w"] / 2 - abs(p[0] - n["x"])
    part = min([1.0] + [half / abs(d) for half, d in ((room, dx), (n["h"] / 2, dy)) if d])
    return p[0] + part * dx, p[1] + part * dy


def room(places: list[dict], a: dict, b: dict, x: float) -> int:
    """Pixels for the number of a wire at x: as wide as the next box beside the smaller of its ends
    is away, and not out of the picture.
    """
    small = min(a, b, key=lambda n: n["w"])
    beside = [abs(n["x"] - small["x"]) for n in places
              if n is not small and n["y"] == small["y"] and n["kind"] == small["kind"]]
    return max(0, round(min([*beside, 120, WIDTH - x + 6]) - 14))


def aside(curve: list[float], way: int) -> list[float]:
    """The curve of one direction of a wire, moved to its right-hand side."""
    x1, y1, cx, cy, x2, y2 = curve
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    dx, dy = (y1 - y2) / length * OFF, (x2 - x1) / length * OFF
    moved = [x1 + dx, y1 + dy, cx + dx, cy + dy, x2 + dx, y2 + dy]
    if way == 0:
        return moved
    moved = [x1 - dx, y1 - dy, cx - dx, cy - dy, x2 - dx, y2 - dy]
    return [*moved[4:], *moved[2:4], *moved[:2]]
