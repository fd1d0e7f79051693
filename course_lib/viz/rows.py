"""The data of the "rows over time" engine: what rows.js plays and static.py draws.

The format is described in rows.js.
"""

from __future__ import annotations

import hashlib
import json
import os

from .theme import LOOK, legend

MAX_BARS = 20_000  # more than that and a browser no longer redraws smoothly
MAX_ROWS = 10  # more rows than that are drawn lower
UNITS = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs"), (0.0, 1e9, "ns"))


def clock(end: float) -> dict:
    """How times are printed: seconds times `scale`, with `digits` decimals, followed by `unit`."""
    scale, unit = (1.0, "s") if end == 0 else next(
        (scale, unit) for least, scale, unit in UNITS if end >= least)
    return {"end": end, "scale": scale, "unit": unit, "digits": 4 if end * scale < 100 else 2}


def time_text(seconds: float, how: dict) -> str:
    """`seconds` as the page prints it, for example "12.0000 s"."""
    return f"{seconds * how['scale']:.{how['digits']}f} {how['unit']}"


def bytes_text(nbytes: int) -> str:
    """A size in bytes for people: exact below 10,000 B, then KiB, MiB, GiB or TiB, one decimal."""
    if nbytes < 10_000:
        return f"{nbytes:,} B"
    power = min(4, (int(nbytes).bit_length() - 1) // 10)
    return f"{nbytes / 1024**power:,.1f} {['', 'Ki', 'Mi', 'Gi', 'Ti'][power]}B"


def count_text(number: int, noun: str) -> str:
    """"1 message", "24 messages"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def place(event) -> str:
    """" (file.py:41)": the library line that made the event, else the learner's, else nothing."""
    if event.source[0]:
        return f" ({os.path.basename(event.source[0])}:{event.source[1]})"
    if not event.site[0]:
        return ""
    from ..launch.errors import readable  # a cell's file name carries a process id

    return f" ({readable(event.site[0])}:{event.site[1]})"


def document(title: str, summary: str, end: float, panels: list[dict], steps: list[list]) -> dict:
    """Assemble what the engine plays. `steps` are [time, sentence, panel, bars, messages].

    The id is a digest of the content, so that stored outputs do not change from run to run.
    """
    how = clock(end)
    bars = sum(len(panel["bars"]) for panel in panels)
    if bars > MAX_BARS:
        raise ValueError(f"{bars:,} bars: a page draws at most {MAX_BARS:,}; choose fewer ranks, "
                         "for example ranks=range(8)")
    low = sum(len(panel["rows"]) for panel in panels) > MAX_ROWS
    used = {bar[3] for panel in panels for bar in panel["bars"]} | {"idle"}
    used |= {kind for panel in panels for strip in panel["strips"]
             for _, held in strip["series"] for kind in held}
    first = [0.0, f"start, {count_text(len(steps), 'event')} to come.", 0, [], []]
    last = [end, f"the last rank has finished, at {time_text(end, how)}.", 0, [], []]
    data = {"title": title, "summary": summary, "clock": how, "theme": legend(used),
            "look": LOOK | ({"row": 22, "gap": 10, "text": 11} if low else {}), "panels": panels,
            "steps": [first, *sorted(steps, key=lambda step: step[0]), last]}
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return {"id": hashlib.sha256(text.encode()).hexdigest()[:12], **data}
