"""`show(x)`: the view that fits x. `machine_picker`: one run on several machines, in one view."""

from __future__ import annotations

import math
from dataclasses import replace as variant

import ipywidgets
from IPython.core.getipython import get_ipython
from IPython.display import display

from ..timeline import Timeline, measured
from ..trace import Trace
from .static import image
from .timeline_view import timeline_data
from .view import View, reporting, show_pair
from .wait_for import WaitFor, wait_for


def unit_steps(trace: Trace):
    """The machine of `show`: every message takes 1 s, the longest computation takes 1 s too.

    Additions inside a collective are free. Both make the order of things visible, not their cost.
    """
    from ..machine import unit

    flops = [e.flops for program in trace.programs.values() for e in program
             if e.kind == "compute" and e.label != "add"]
    return variant(unit(), name="unit steps", latency=1.0, bandwidth=math.inf,
                   flops=float(max(flops, default=0) or 1))


def show(x, machine=None, ranks=None, wall_clock: bool = False):
    """The view of a Run, a Trace, a Timeline, a failed run's error or a wait-for graph.

    x: a Run or Trace is replayed on `machine` (default `unit_steps`: each message takes 1 s);
       an asynchronous run on `stated()`, the clock of its workers' speeds, and on no other;
       with wall_clock=True it is drawn by the clock of the run itself, which differs every time.
    ranks: the ranks that get rows (default: all).
    """
    if isinstance(x, dict) and "edges" in x:
        return wait_for(x)
    if isinstance(getattr(x, "graph", None), dict):
        return wait_for(x.graph)
    return View(data=timeline_data(timeline_of(x, machine, wall_clock), ranks))


def timeline_of(x, machine=None, wall_clock: bool = False) -> Timeline:
    """The Timeline of a Run or a Trace; a Timeline is returned as it is."""
    if isinstance(x, Timeline):
        if machine is not None or wall_clock:
            raise ValueError("machine: a Timeline has its clock already; give its Run or Trace")
        return x
    trace = x if isinstance(x, Trace) else getattr(x, "trace", None)
    if not isinstance(trace, Trace):
        what = "was run with record=False" if hasattr(x, "trace") else f"is a {type(x).__name__}"
        raise ValueError(f"x: {what}; must be a recorded Run, a Trace, a Timeline or a failed run")
    if wall_clock:
        return measured(trace)
    from ..machine import stated
    from ..virtual_time import replay

    usual = stated() if trace.asynchronous else unit_steps(trace)
    return replay(trace, usual if machine is None else machine)


class MachinePicker(ipywidgets.VBox):
    """A choice of machines above one view, which replays the trace on the chosen one in place."""

    def __init__(self, run, machines: dict, ranks=None):
        if not machines:
            raise ValueError("machines={}: name at least one machine")
        self.run, self.machines, self.ranks = run, machines, ranks
        self.choice = ipywidgets.Dropdown(options=list(machines), description="machine")
        self.view = View(data=self._data())
        self.choice.observe(reporting(self.view, self.pick), "value")
        super().__init__([self.choice, self.view])

    def _data(self) -> dict:
        chosen = self.machines[self.choice.value]
        if isinstance(chosen, Timeline):
            return timeline_data(chosen, self.ranks)
        return timeline_data(timeline_of(self.run, chosen), self.ranks)

    def pick(self, _change=None) -> None:
        """Replay on the machine chosen now."""
        self.view.replace(self._data())

    def __repr__(self) -> str:
        others = [name for name in self.machines if name != self.choice.value]
        also = f"; also on {', '.join(others)}" if others else ""
        return f"{self.view.data['summary']}{also}"

    def _ipython_display_(self) -> None:
        data = self.view.data
        show_pair(self, image(self.view.still(), data["summary"], data["id"]))


def machine_picker(run, machines: dict, ranks=None) -> MachinePicker:
    """One run on several machines: a Run or Trace, {name: Machine}, and the ranks to show.

    In the place of a Machine, a Timeline is shown as it is: the same program on more ranks, say.
    """
    return MachinePicker(run, machines, ranks)


def on_failure(error) -> None:
    """In a notebook, display who waits for whom in a failed run (if its error knows)."""
    graph = getattr(error, "graph", None)
    if get_ipython() is not None and graph and graph.get("edges"):
        display(WaitFor(graph))
