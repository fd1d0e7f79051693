"""The ZeRO player: what every rank holds of every unit in one training step, and how it travels.

`show_zero(run)` draws a recorded run; `explore_zero()` runs what its controls say, and draws that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace as variant

import ipywidgets

from ..timeline import Timeline
from ..trace import CATEGORIES, Trace
from ..virtual_time import replay
from .cells import Stage, with_cells
from .cells_view import CellsView, trace_of
from .excerpt import between
from .gauges import bytes_so_far, status
from .rows import bytes_text, clock, count_text, document, time_text
from .show import unit_steps
from .static import image
from .timeline_view import timeline_data
from .view import reporting, show_pair
from .zero_runs import MODELS, STAGES, recorded
from .zero_state import UPDATE, Plan, Shards
from .zero_story import story

MARKS = ("step begins", "step ends")
RANKS = (2, 3, 4)
NONE = "nothing"


def show_zero(x, machine=None, title: str = "") -> CellsView:
    """One training step of a run of ZeRO, cell by cell: the last one marked "step begins".

    x: a Run or a Trace of the strategies of zero.py, with group.mark("step begins") and ("step
    ends") around a step, or several by their names, {name: Run}, side by side.
    machine: default: each message takes 1 s, the longest computation too.
    """
    return CellsView(data=zero_data(x if isinstance(x, dict) else {title: x}, machine))


def zero_data(runs: dict, machine=None) -> dict:
    """The engine's data for one or more runs on one clock."""
    cut = {name: between(trace_of(run), *MARKS) for name, run in runs.items()}
    machine = machine or story_steps([inside for _, inside in cut.values()])
    shards = {}
    for name, (before, inside) in cut.items():
        timeline = on_top(replay(inside, machine), before)
        results = getattr(runs[name], "results", None)
        shards[name] = Shards(timeline, before, results[0] if _sizes(results) else None)
    stage, panels, steps = _picture(shards, len(runs) > 1)
    end = max(one.timeline.makespan for one in shards.values())
    title = " beside ".join(filter(None, runs)) or "ZeRO"
    title += ": " + "; ".join({_size(one): None for one in shards.values()})
    summary = f"{title}: " + ". ".join(
        (f"{name}: " if len(runs) > 1 else "") + _figures(one) for name, one in shards.items())
    data = document(title, summary, end, panels, [step[:5] for step in steps])
    stage.code = ["", *(step[5] for step in steps), ""]
    return with_cells(data, stage)


def story_steps(traces: list[Trace]):
    """Unit steps, in which the longest update of an optimizer takes 1 s as well."""
    nbytes = [e.nbytes for trace in traces for program in trace.programs.values()
              for e in program if e.kind == "compute" and e.label == UPDATE]
    slowest = min((unit_steps(trace) for trace in traces), key=lambda machine: -machine.flops)
    return variant(slowest, memory_bandwidth=float(max(nbytes, default=0) or 1))


def on_top(timeline: Timeline, before: Trace) -> Timeline:
    """The timeline, with what the ranks held before it added to what they hold."""
    for rank in range(timeline.world_size):
        base = Counter(dict.fromkeys(CATEGORIES, 0))
        for e in before.events(rank):
            if e.kind in ("alloc", "free"):
                base[e.category] += e.nbytes if e.kind == "alloc" else -e.nbytes
        timeline.held[rank] = [(0.0, dict(base))] + [
            (time, {kind: n + base[kind] for kind, n in held.items()})
            for time, held in timeline.held[rank]]
    return timeline


def _picture(shards: dict[str, Shards], several: bool):
    """Stage, panels of rows and steps of all runs."""
    short = {name: name if len(name) < 8 else f"{name[:6]}…" for name in shards}
    ranks = {name: [f"{short[name]} {r}" if several else f"rank {r}" for r in range(one.W)]
             for name, one in shards.items()}
    lanes = max((one.lanes() for one in shards.values()), key=len)
    plan = Plan([one.units for one in shards.values()], lanes)
    stage = Stage([name for names in ranks.values() for name in names], plan.drawn())
    stage.ring, first, panels, told = False, 0, [], defaultdict(list)
    memory, sent = [], []
    for number, (name, one) in enumerate(shards.items()):
        one.put_on(stage, plan, first)
        rows = timeline_data(one.timeline)
        for rank, entries in enumerate(status(rows["panels"][0], one.W)):
            stage.places[first + rank]["status"] = entries
            memory.append([[t, {k: n for k, n in held.items() if n}]
                           for t, held in one.timeline.memory(rank)])
            sent.append(bytes_so_far(one.timeline, rank, "src"))
        for time, text, line in story(one):
            told[time].append((f"{name}: {text}" if several else text, line, number, rows))
        panels.append(rows["panels"][0] | {"title": name if several else ""})
        first += one.W
    stage.meter("memory", "B", memory, smooth=False)
    stage.meter("sent", "B", sent)
    return stage, panels, [_step(time, told[time]) for time in sorted(told)]


def _step(time: float, told: list[tuple]) -> list:
    """A step: its sentences, what it highlights in one panel, its first line of code."""
    bars, arrows = [], []
    _, line, number, rows = told[0]
    for when, _, _, some, more in rows["steps"]:
        if when == time and more:
            bars, arrows = bars + some, arrows + more
    return [time, ". ".join(text for text, *_ in told), number, bars, arrows, line]


def _sizes(results) -> bool:
    return bool(results) and isinstance(results[0], list) and all(
        isinstance(n, int) for n in results[0])


def _size(one: Shards) -> str:
    """"12 parameters in 3 units on 4 ranks"."""
    elements = sum(unit.elements - unit.padding for unit in one.units.values())
    return (f"{count_text(elements, 'parameter')} in {count_text(len(one.units), 'unit')} on "
            f"{count_text(one.W, 'rank')}")


def _figures(one: Shards) -> str:
    """What the step costs rank 0, in numbers."""
    timeline = one.timeline
    sent = sum(m.nbytes for m in timeline.messages if m.src == 0)
    held = [sum(now.values()) for _, now in timeline.memory(0)]
    return (f"rank 0 sends {bytes_text(sent)}, holds {bytes_text(max(held))} at most and "
            f"{bytes_text(held[-1])} in the end; makespan "
            f"{time_text(timeline.makespan, clock(timeline.makespan))}")


class ZeroExplorer(ipywidgets.VBox):
    """Stage, ranks, a stage beside it and the model; a change runs them in processes, in place."""

    def __init__(self, stage, ranks: int, compare, model: str):
        names = {name: key for key, (name, _) in STAGES.items()}
        self.stage, self.ranks, self.compare, self.model = (
            ipywidgets.Dropdown(options=options, value=value, description=text,
                                layout={"width": "260px"})
            for text, options, value in (
                ("stage", list(names.items()), stage), ("W ranks", RANKS, ranks),
                ("beside it", [(NONE, NONE), *names.items()],
                 NONE if compare is None else compare), ("model", MODELS, model)))
        self.view = CellsView(data=self._data())
        controls = (self.stage, self.ranks, self.compare, self.model)
        for control in controls:
            control.observe(reporting(self.view, self.update), "value")
        super().__init__([ipywidgets.HBox(controls, layout={"flex_flow": "row wrap"}), self.view])

    def _data(self) -> dict:
        chosen = [self.stage.value]
        if self.compare.value not in (NONE, self.stage.value):
            chosen.append(self.compare.value)
        return zero_data({STAGES[key][0]: recorded(key, self.ranks.value, self.model.value)
                          for key in chosen})

    def update(self, _change=None) -> None:
        """Run what the controls say and show it."""
        self.view.replace(self._data())

    def __repr__(self) -> str:
        return f"{self.view.data['summary']}; controls: stage, ranks, beside it, model"

    def _ipython_display_(self) -> None:
        data = self.view.data
        show_pair(self, image(self.view.still(), data["summary"], data["id"]))


def explore_zero(stage=2, ranks: int = 4, compare=None, model: str = MODELS[0]) -> ZeroExplorer:
    """One training step in a stage of ZeRO, played from a run in real processes.

    stage, and compare beside it: a key of STAGES: 0 (DDP), 1, 2, 3, "3 prefetch", "1
    all-reduce". ranks: 2, 3 or 4. model: "12 parameters" or "GPT". ValueError for anything else.
    """
    for name, value, choices in (("stage", stage, tuple(STAGES)), ("ranks", ranks, RANKS),
                                 ("compare", compare, (None, *STAGES)), ("model", model, MODELS)):
        if value not in choices or isinstance(value, bool):
            raise ValueError(f"{name}={value!r}: must be one of {', '.join(map(repr, choices))}")
    return ZeroExplorer(stage, ranks, compare, model)
