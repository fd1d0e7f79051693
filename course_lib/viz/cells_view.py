"""`show_collective(run)`: who holds what, how it travels. `bytes_chart(run)`: who sent how much."""

from __future__ import annotations

from plotly.subplots import make_subplots

from ..timeline import Timeline
from ..trace import SENDS, Trace
from .cells_still import cells_still
from .chart import Chart
from .collective import collective_data
from .excerpt import one_call
from .show import timeline_of
from .theme import FAINT, TEXT, colour, style
from .view import View, engine


class CellsView(View):
    """Cells that travel, their timeline below, one clock (data: cells.py, rows.js)."""

    _esm = engine("player.js", "draw.js", "rows.js", "cells.js",
                  plays="new Stack([new Cells(data), new Rows(data)])")

    def still(self) -> str:
        """The static picture, as SVG: three moments and the timeline."""
        return cells_still(self.data)


def show_collective(x, machine=None, call: int | None = None, title: str = "") -> CellsView:
    """Which rank holds which part of the data of a run, cell by cell, and how the cells travel.

    x: a Run or a Trace, replayed on `machine` (default: each message takes 1 s), or a Timeline.
    call: number of the collective call to show, 0, 1, ..; default: the only one, else everything.
    """
    if isinstance(x, Timeline):
        if call is not None:
            raise ValueError(f"call={call}: a Timeline has its clock already; give its Run")
        timeline = timeline_of(x, machine)
    else:
        timeline = timeline_of(one_call(trace_of(x), call), machine)
    return CellsView(data=collective_data(timeline, title))


def trace_of(x) -> Trace:
    """The Trace of a Run, a Timeline or a Trace."""
    trace = x if isinstance(x, Trace) else getattr(x, "trace", None)
    if not isinstance(trace, Trace):
        what = "was run with record=False" if hasattr(x, "trace") else f"is a {type(x).__name__}"
        raise ValueError(f"x: {what}; must be a recorded Run, a Trace or a Timeline")
    return trace


def bytes_chart(x, call: int | None = None) -> Chart:
    """Bytes that each rank sent and received, and bytes from each rank to each other one."""
    trace = one_call(trace_of(x), call)
    ranks = list(range(trace.world_size))
    table = [[0] * trace.world_size for _ in ranks]
    for (rank, _), program in trace.programs.items():
        for e in program:
            if e.kind in SENDS:
                table[rank][e.peer] += e.nbytes
    figure = make_subplots(1, 2, subplot_titles=("bytes per rank", "bytes per pair of ranks"),
                           figure=Chart())
    received = [sum(row[rank] for row in table) for rank in ranks]
    for name, kind, values in (("sent", "send", list(map(sum, table))),
                               ("received", "recv", received)):
        figure.add_bar(x=ranks, y=values, name=name, marker_color=colour(kind), text=values,
                       row=1, col=1)
    figure.add_heatmap(x=ranks, y=ranks, z=[[n or None for n in row] for row in table],
                       text=[[f"{n:,}" if n else "" for n in row] for row in table],
                       texttemplate="%{text}", showscale=False, hovertemplate=
                       "rank %{y} to rank %{x}: %{z} B<extra></extra>",
                       colorscale=[[0, "#f7cf7a"], [1, colour("send")]], row=1, col=2)
    style(figure)
    figure.update_xaxes(dtick=1, title_text="rank", gridcolor=FAINT, linecolor=TEXT)
    figure.update_xaxes(title_text="to rank", showgrid=False, row=1, col=2)
    figure.update_yaxes(title_text="bytes", gridcolor=FAINT, linecolor=TEXT, row=1, col=1)
    figure.update_yaxes(title_text="from rank", autorange="reversed", dtick=1, showgrid=False,
                        zeroline=False, row=1, col=2)
    return figure.update_layout(height=320, legend={"orientation": "h", "y": 1.18})
