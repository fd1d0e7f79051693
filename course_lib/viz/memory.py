"""`memory_chart(run)`: what a rank holds over one training step, by category, with its peak."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..trace import CATEGORIES, Trace
from ..virtual_time import replay
from .cells_view import trace_of
from .excerpt import between
from .rows import bytes_text
from .theme import MEANINGS, TEXT, colour, style
from .zero_trace import moments
from .zero_view import MARKS, on_top, story_steps

PHASES = ("forward", "backward", "optimizer")


def memory_chart(x, rank: int = 0, machine=None) -> go.Figure:
    """Bytes that a rank holds, stacked by category, through forward, backward and optimizer.

    x: a Run or a Trace, or several by name, {name: Run}, on one scale. A step between the marks
    "step begins" and "step ends" is shown where there are such marks, else everything. Phases are
    what computations are labelled: group.label("forward"), "backward", "optimizer".
    machine: the horizontal axis is seconds on it; default: every allocation and release, in order.
    """
    runs = x if isinstance(x, dict) else {"": x}
    figure = make_subplots(1, len(runs), subplot_titles=list(runs), shared_yaxes=True,
                           horizontal_spacing=0.04)
    style(figure)
    found = [held_through(trace_of(run), rank, machine) for run in runs.values()]
    for column, (points, phases) in enumerate(found, 1):
        _draw(figure, column, points)
        _mark(figure, column, points, phases)
    most = max(sum(held.values()) for points, _ in found for _, held in points)
    text = "allocations and releases, in order" if machine is None else f"s on {machine.name}"
    figure.update_xaxes(title=text, gridcolor="rgba(0,0,0,0)", linecolor=TEXT)
    figure.update_yaxes(range=[0, most * 1.25])
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
    points, phases, count, label, since = [(0.0, curve[0][1])], [], 0, "", 0.0
    for m in moments(timeline)[rank]:
        if m.event.kind in ("alloc", "free"):
            count += 1
            points.append((m.start if machine else float(count), curve[count][1]))
        elif m.event.kind == "compute" and m.event.label in PHASES and m.event.label != label:
            now = m.start if machine else float(count)
            phases.append((since, now, label))
            label, since = m.event.label, now
    phases.append((since, timeline.makespan if machine else float(count), label))
    return points, [phase for phase in phases if phase[2]]


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


def _mark(figure, column: int, points, phases) -> None:
    """Where the phases begin, and the peak."""
    at, held = max(points, key=lambda point: sum(point[1].values()))
    most = sum(held.values())
    for start, end, label in phases:
        figure.add_vline(x=start, line={"color": TEXT, "width": 1, "dash": "dot"}, row=1,
                         col=column)
        figure.add_annotation(x=(start + end) / 2, y=0.99, yref="y domain", text=label,
                              showarrow=False, row=1, col=column)
    figure.add_annotation(x=at, y=most, text=f"peak {bytes_text(most)} ({_phase(phases, at)})",
                          arrowhead=2, ax=0, ay=-28, row=1, col=column)
