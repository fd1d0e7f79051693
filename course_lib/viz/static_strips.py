"""The strips of a static picture: what each row holds over time, stacked by meaning."""

from __future__ import annotations

from .theme import STRONG


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def strips(picture):
    """The strips of a `static.Picture` whose data shows them, as SVG paths."""
    if not picture.on["strips"]:
        return
    for panel, tops in zip(picture.data["panels"], picture.rows, strict=True):
        for strip in panel["strips"]:
            yield from _strip(picture, strip, tops[strip["row"]])


def _strip(picture, strip: dict, top: float):
    high, series = picture.look["strip"], strip["series"]
    bottom = top + picture.look["row"] + 4 + high
    most = strip.get("top") or max((sum(held.values()) for _, held in series), default=0) or 1.0
    scale, below = (high - 2) / most, [0.0] * len(series)
    ends = [picture.x(t) for t, _ in series[1:]] + [picture.x(picture.end)]
    for kind, m in picture.theme.items():
        if not any(kind in held for _, held in series):
            continue
        path = ""
        for k, (start, held) in enumerate(series):
            x, y = picture.x(start), bottom - (below[k] + held.get(kind, 0)) * scale
            if held.get(kind):
                path += (f"M{number(x)} {number(bottom - below[k] * scale)}V{number(y)}"
                         f"H{number(ends[k])}V{number(bottom - below[k] * scale)}z")
            below[k] += held.get(kind, 0)
        fill = f"url(#{kind})" if m["hatch"] else m["colour"]
        yield f'<path d="{path}" fill="{fill}"/>'
    if strip.get("line"):
        y = number(bottom - strip["line"] * scale)
        yield (f'<path d="M{number(picture.x(0))} {y}H{number(picture.x(picture.end))}" '
               f'stroke="{STRONG}" stroke-dasharray="5 3" fill="none"/>')
