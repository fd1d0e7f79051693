"""`bubble_chart()`: what share of the time is bubble, against the number of micro-batches."""

from __future__ import annotations

from ..schedule import time_schedule
from .chart import Chart
from .pipeline_text import KNOWN, schedule_name, whole_rank_times
from .theme import STRONG, style

DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def bubble_chart(schedule="1f1b", p=(2, 4, 8), m=(1, 2, 4, 8, 16, 32, 64), *,
                 definition: str = "fraction", v: int = 2,
                 times: dict[str, float] | None = None) -> Chart:
    """The bubble of schedules against m, a curve for each p: every point is a timed schedule.

    schedule: a name, or several. definition: "fraction" (over total time) or "ratio" (over useful
    time). times: of a micro-batch on a whole rank, default 1 for F, I and W. Where a schedule does
    not exist (m no multiple of p, ...) there is no point. A star marks m = 4p.
    """
    if definition not in ("fraction", "ratio"):
        raise ValueError(f"definition={definition!r}: must be fraction or ratio")
    names = [schedule_name(one) for one in ([schedule] if isinstance(schedule, str) else schedule)]
    sizes, figure = [p] if isinstance(p, int) else list(p), style(Chart())
    for i, name in enumerate(names):
        for k, size in enumerate(sizes):
            points = bubble_points(name, size, m, definition, v, times)
            label = f"{name}, p={size}" if len(names) > 1 else f"p={size}"
            figure.add_scatter(
                x=list(points), y=list(points.values()), name=label, mode="lines+markers",
                line_dash=DASHES[(i if len(names) > 1 else k) % len(DASHES)],
                marker={"symbol": ["star" if x == 4 * size else "circle" for x in points],
                        "size": [13 if x == 4 * size else 7 for x in points]})
    over = "total" if definition == "fraction" else "useful"
    figure.update_layout(title=f"Bubble {definition} = idle / {over} time (star: m = 4p)",
                         height=380)
    figure.update_xaxes(type="log", title="m, micro-batches", tickvals=list(m),
                        ticktext=[str(x) for x in m])
    figure.update_yaxes(title=f"bubble {definition}", rangemode="tozero")
    if definition == "fraction":
        figure.add_hline(y=0.2, line_dash="dot", line_color=STRONG, annotation_text="20 %")
    return figure


def bubble_points(name: str, p: int, ms, definition: str = "fraction", v: int = 2,
                  times: dict[str, float] | None = None) -> dict[int, float]:
    """m -> bubble, of the m for which the schedule exists."""
    found = {}
    for m in ms:
        try:
            schedule = KNOWN[name].build(p, m, v)
        except ValueError:
            continue
        whole = whole_rank_times(schedule, **{"F": 1.0, "I": 1.0, "W": 1.0, **(times or {})})
        timeline = time_schedule(schedule, whole)
        found[m] = getattr(timeline, f"bubble_{definition}")
    return found
