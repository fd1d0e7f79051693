"""`memory_chart(run)`: what a rank holds over one training step, by category, with its peak."""

from __future__ import annotations

from itertools import groupby

from plotly.subplots import make_subplots

from ..trace import CATEGORIES, MAIN, Trace
from ..virtual_time import replay
from .cells_view import trace_of
from .chart import Chart
from .excerpt import between
from .theme import MEANINGS, TEXT, colour, style
from .zero_trace import moments
from .zero_view import MARKS, on_top, story_steps

PHASES = {"forward": "F", "backward": "B", "optimizer": "opt"}


def memory_chart(x, rank: int = 0, machine=None) -> Chart:
    """Bytes that a rank holds, stacked by category, through forward, backward and optimizer.

    x: a Run or a Trace, or several by name, {name: Run}, on one scale. A step between the marks
    "step begins" and "step ends" is shown where there are such marks, else everything. Phases are
    what computations are labelled: group.label("forward"), "backward", "optimizer".
    machine: the horizontal axis is seconds on it; default: every allocation and release, in order.
    """
    runs = x if isinstance(x, dict) else {"": x}
    figure = make_subplots(1, len(runs), subplot_titles=list(runs), shared_yaxes=True,
                           horizontal_spacing=0.04, figure=Chart())
    style(figure)
    found = [held_through(trace_of(run), rank, machine) for run in runs.values()]
    for column, (points, phases) in enumerate(found, 1):
        _draw(figure, column, thinned(points))
        _mark(figure, column, points, phases, len(runs) > 2)
    most = max(sum(held.values()) for points, _ in found for _, held in points)
    text = "allocations and releases, in order" if machine is None else f"s on {machine.name}"
    figure.update_xaxes(gridcolor="rgba(0,0,0,0)", linecolor=TEXT)
    figure.update_xaxes(title=text, col=(len(runs) + 1) // 2)
    figure.update_yaxes(range=[0, most * 1.6])
    figure.update_yaxes(title="bytes", col=1)
    return figure.update_layout(height=400, legend={"orientation": "h", "y": -0.25})


def peak_of(x, rank: int = 0) -> tuple[int, str]:
    """The most bytes that the rank holds in the step, and the phase in which it does."""
    points, phases = held_through(trace_of(x), rank)
    at, held = max(points, key=lambda point: sum(point[1].values()))
    return sum(held.values()), _phase(phases, at)


def held_through(trace: Trace, rank: int, machine=None):
    """[(position, bytes by category)] after every change, and phases [(from, to, label)]."""
    before, inside = Trace(trace.world_size), trace
    if any(e.kind == "record" and e.event == MARKS[0] for e in trace.program(rank)):
        before, inside = between(trace, *MARKS)
    timeline = on_top(replay(inside, machine or story_steps([inside])), before)
    curve = timeline.memory(rank)
    points, names = [(0, curve[0][1])], []
    rows = moments(timeline)[rank]
    # What is allocated for a computation comes before it: an operator is recorded when it is over.
    following, label = [], ""
    for m in reversed(rows):
        if m.event.kind == "compute" and m.event.label != "add" and m.stream == MAIN:
            label = m.event.label if m.event.label in PHASES else ""
        following.append(label)
    for m, name in zip(rows, reversed(following)):
        if m.event.kind in ("alloc", "free"):
            count = len(points)
            points.append((m.start if machine else count, curve[count][1]))
            names.append(name)
    phases, before_it = [], "the step begins"
    for name, run in groupby(range(len(names)), key=lambda i: names[i]):
        run = list(run)
        phases.append((points[run[0]][0], points[run[-1] + 1][0], name or f"after {before_it}"))
        before_it = name or before_it
    return points, phases


def thinned(points: list[tuple], most: int = 80) -> list[tuple]:
    """At most about so many points: of neighbours the one with most bytes, so peaks stay."""
    each = -(-len(points) // most)
    return [max(points[i:i + each], key=lambda point: sum(point[1].values()))
            for i in range(0, len(points), each)] + points[-1:]


def _phase(phases, at: float) -> str:
    return next((label for start, _, label in reversed(phases) if start <= at), "")


def _draw(figure, column: int, points) -> None:
    for kind in CATEGORIES:
        if any(held[kind] for _, held in points):
            figure.add_scatter(
                x=[at for at, _ in points], y=[held[kind] for _, held in points], mode="lines",
                line={"shape": "hv", "width": 0.5, "color": colour(kind)}, stackgroup="held",
                fillcolor=colour(kind), name=MEANINGS[kind].name, legendgroup=kind,
                showlegend=column == 1, row=1, col=column)


def _mark(figure, column: int, points, phases, narrow: bool) -> None:
    """Where the phases begin, and the peak."""
    at, held = max(points, key=lambda point: sum(point[1].values()))
    most, last = sum(held.values()), points[-1][0]
    for label in PHASES:
        own = [phase for phase in phases if phase[2] == label]
        if not own:
            continue
        start, end = own[0][0], own[-1][1]
        figure.add_vline(x=start, line={"color": TEXT, "width": 1, "dash": "dot"}, row=1,
                         col=column)
        figure.add_annotation(x=(start + end) / 2, y=0.99, yref="y domain", showarrow=False,
                              text=PHASES[label] if narrow else label, row=1, col=column)
    words = f"{most:,} B{'<br>' if narrow else ', '}{_phase(phases, at)}"
    side = "left" if at < last / 3 else "right" if at > last * 2 / 3 else "center"
    figure.add_annotation(x=at, y=most, text=words if narrow else f"peak {words}", arrowhead=2,
                          ax=0, ay=-28, xanchor=side, row=1, col=column)
    figure.update_xaxes(range=[0, last], row=1, col=column)
