"""`staleness_chart(runs)`: what old gradients cost, from asynchronous runs just made."""

from __future__ import annotations

import math

from plotly.subplots import make_subplots

from .chart import Chart
from .theme import FAINT, TEXT, style

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def staleness_chart(runs: dict) -> Chart:
    """Left: the last loss of each run over the mean staleness of its gradients. Right: its losses
    by the clock of the workers.

    runs: {name: [(push, loss), ...]}, one pair per update of the server, as `serve` yields the
    pushes and as you compute the loss after each. ValueError for a run without updates.
    """
    if not runs or not all(runs.values()):
        raise ValueError(f"runs: {', '.join(n for n in runs if not runs[n]) or 'none'} without an "
                         "update")
    figure = make_subplots(1, 2, subplot_titles=("after the last update", "by the workers' clock"),
                           figure=Chart())
    means = [sum(push.staleness for push, _ in run) / len(run) for run in runs.values()]
    last = [float(run[-1][1]) for run in runs.values()]
    figure.add_scatter(x=means, y=last, text=list(runs), mode="lines+markers+text",
                       textposition="top center", showlegend=False, line_color=TEXT, row=1, col=1)
    for number, (name, run) in enumerate(runs.items()):
        figure.add_scatter(x=[push.time for push, _ in run], y=[float(loss) for _, loss in run],
                           name=name, mode="lines", line_dash=DASHES[number % len(DASHES)],
                           row=1, col=2)
    style(figure)
    losses = [float(loss) for run in runs.values() for _, loss in run]
    if all(0 < loss < math.inf for loss in losses):
        figure.update_yaxes(type="log")
    figure.update_xaxes(title_text="mean staleness, updates", gridcolor=FAINT, linecolor=TEXT)
    figure.update_xaxes(title_text="seconds", row=1, col=2)
    figure.update_yaxes(gridcolor=FAINT, linecolor=TEXT)
    figure.update_yaxes(title_text="loss", row=1, col=1)
    return figure.update_layout(height=360)
