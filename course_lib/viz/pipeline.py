"""`explore_pipeline()`: a schedule over time, with controls; two of them; or a learner's own."""

from __future__ import annotations

from dataclasses import replace as variant
from functools import lru_cache

import ipywidgets

from ..machine import dgx_h100, laptop, pcie_server
from ..schedule import problem, time_schedule
from .pipeline_controls import Controls
from .pipeline_rows import PipelinePanel, legal_or_why, order_panel, seconds_text
from .pipeline_text import (
    KNOWN,
    bubble_note,
    closed_form_note,
    headline,
    schedule_name,
    whole_rank_times,
)
from .rows import document
from .static import Picture, image
from .view import View, show_pair

MOST_RANKS, MOST_MICRO_BATCHES = 8, 32
OWN, NOTHING, AS_SET = "yours", "nothing", "transfer time"
PLACES = {  # where the ranks of a pipeline are; the same GPU everywhere but on the laptop
    AS_SET: lambda p: None,
    "NVLink: one DGX H100": lambda p: dgx_h100(1),
    "leaf: a node for each rank": lambda p: variant(dgx_h100(p), gpus_per_node=1),
    "spine: a leaf for each rank": lambda p: variant(dgx_h100(p, leaf_nodes=1), gpus_per_node=1),
    "PCIe server": lambda p: pcie_server(8),
    "laptop": lambda p: laptop(),
}
LOOK = {"row": 26, "gap": 8, "strip": 22, "room": 3}
LOW_LOOK, MOST_HIGH_ROWS = LOOK | {"row": 18, "gap": 6, "strip": 18}, 9


def explorer_document(title: str, panels: list[PipelinePanel], notes: list[str], summary: str,
                      cap: float = 0.0, until_w: float = 1.0, messages: bool = False) -> dict:
    """What the engine plays for timed schedules above each other, on one clock."""
    end = max(panel.timeline.makespan for panel in panels)
    held = [panel.timeline.in_flight(rank, until_w=until_w) for panel in panels
            for rank in range(panel.timeline.world_size)]
    for panel in panels:
        panel.add_strips(max([*held, cap]), cap, until_w)
    data = document(title, summary, end, [panel.panel for panel in panels],
                    [step for panel in panels for step in panel.steps])
    data["theme"].pop("idle")  # every idle moment is a bar here
    rows = sum(len(panel.schedule) for panel in panels)
    return data | {"notes": notes, "on": {"messages": messages, "strips": True},
                   "look": data["look"] | (LOW_LOOK if rows > MOST_HIGH_ROWS else LOOK)}


@lru_cache(maxsize=64)
def _timed(name: str, p: int, m: int, v: int, machine: str, nbytes: int, **how):
    return _time(KNOWN[name].build(p, m, v), p, machine, nbytes, **how)


def _time(schedule, p: int, machine: str, nbytes: int, barrier: bool, latency: float, **times):
    place = PLACES[machine](p)
    return time_schedule(schedule, whole_rank_times(schedule, **times), barrier=barrier,
                         **({"latency": latency} if place is None else
                            {"machine": place, "nbytes": nbytes}))


class PipelineExplorer(ipywidgets.VBox):
    """Controls above one view; each change times the schedules anew and shows them in place."""

    def __init__(self, own, visible: tuple[str, ...], **values):
        self.own = own
        self.controls = Controls([*([OWN] if own is not None else []), *KNOWN], NOTHING,
                                 list(PLACES), values)
        self.view = View(data=self._data())
        self.view.error = self.why
        for control in self.controls.all.values():
            control.observe(self.update, "value")
        super().__init__([*self.controls.boxes(visible), self.view])

    def update(self, _change=None) -> None:
        """Time what the controls say now and show it; what cannot run is said in red."""
        with self.view.hold_sync():
            try:
                self.view.replace(self._data())
            except Exception as error:  # noqa: BLE001  whatever a control runs into must be seen
                self.why, self.view.stale = str(error), True
            self.view.error = self.why

    def save_html(self, path) -> None:
        """Write a page that plays what is shown now, without a kernel and without a network."""
        self.view.save_html(path)

    def schedule(self, name: str):
        """The Schedule, or the learner's list as it is, under this name of the controls."""
        c = self.controls
        if name != OWN:
            return KNOWN[name].build(c["p"], c["m"], c["v"])
        return self.own(c["p"], c["m"]) if callable(self.own) else self.own

    def timeline(self, name: str):
        """The PipelineTimeline of the schedule of this name; IllegalSchedule, a ValueError."""
        c = self.controls
        how = dict(machine=c["machine"], nbytes=round(c["message"] * 2**20), barrier=c["barrier"],
                   **{name: c.ms(name) for name in ("latency", "F", "I", "W", "pair")})
        if name == OWN:
            schedule, why = legal_or_why(self.schedule(name))
            if why:
                raise ValueError(why)
            return _time(schedule, len(schedule), **how)
        return _timed(name, c["p"], c["m"], c["v"], **how)

    def _data(self) -> dict:
        c, self.why = self.controls, ""
        names = [c["schedule"], *([c["compare"]] if c["compare"] != NOTHING else [])]
        if OWN in names and (why := legal_or_why(self.schedule(OWN))[1]):
            self.why = why
            return self._order(self.schedule(OWN))
        panels, notes = [], []
        for number, name in enumerate(names):
            timeline = self.timeline(name)
            panels.append(PipelinePanel(headline(name, timeline), timeline, number,
                                        name if len(names) > 1 else ""))
            notes += [bubble_note(name, timeline, c["kept"]), self._closed_form(name, timeline)]
            if c["cap"] and not self.why:
                found = problem(timeline.schedule, memory_cap=c["cap"], until_w=c["kept"])
                self.why = f"{name}: {found}" if found else ""
        sizes = {(t.world_size, t.schedule.num_microbatches) for t in (q.timeline for q in panels)}
        size = ", ".join(f"p={p}, m={m}" for p, m in sorted(sizes))
        labels = [f"{name}, v={c['v']}" if name != OWN and KNOWN[name].chunks else name
                  for name in names]
        spans = " and ".join(seconds_text(panel.timeline.makespan) for panel in panels)
        shares = " and ".join(f"{panel.timeline.bubble_fraction:.4f}" for panel in panels)
        return explorer_document(
            f"{' and '.join(labels)}: {size}", panels, [note for note in notes if note],
            f"Pipeline {' above '.join(labels)}, {size}: makespan {spans}, bubble fraction "
            f"{shares}", c["cap"], c["kept"])

    def _closed_form(self, name: str, timeline) -> str:
        c = self.controls
        if c["machine"] != AS_SET or c["barrier"]:
            return ""
        return closed_form_note(name, timeline, c["p"], c["m"], v=c["v"], F=c.ms("F"), I=c.ms("I"),
                                W=c.ms("W"), latency=c.ms("latency"),
                                overlapped=c.ms("pair") or None)

    def _order(self, schedule) -> dict:
        """The learner's lists as they stand, when they cannot be timed."""
        panel, steps, slots = order_panel(schedule)
        data = document(f"{OWN}: the order, without times", f"Pipeline schedule that cannot run: "
                        f"{self.why}", float(slots), [panel], steps)
        data["clock"] = {"end": float(slots), "scale": 1.0, "unit": "entries", "digits": 0}
        return data | {"notes": [], "look": data["look"] | LOOK}

    def __repr__(self) -> str:
        data = self.view.data
        said = [*data["notes"], self.why] if self.why not in data["summary"] else data["notes"]
        return f"{data['summary']}. {' '.join(said)} Controls: {', '.join(self.controls.all)}"

    def _ipython_display_(self) -> None:
        data = self.view.data
        said = data | {"notes": [*data["notes"], *([self.why] if self.why else [])]}
        show_pair(self, image(Picture(said).svg(), data["summary"], data["id"]))


def explore_pipeline(schedule="1f1b", p: int = 4, m: int = 8, compare: str | None = None, *,
                     times: dict[str, float] | None = None, latency: float = 0.0, v: int = 2,
                     machine: str = AS_SET, message_mib: float = 16.0, barrier: bool = False,
                     memory_cap: float = 0.0, kept_for_w: float = 1.0,
                     controls: tuple[str, ...] = ("schedule", "p", "m", "compare")):
    """A pipeline schedule over time: ops, idle time, activations in flight, both bubbles.

    schedule: a name such as "gpipe", "1f1b", "zb-h1"; a list with one list of Op per rank; or a
        function of p and m that returns one. p: ranks, 1 to 8. m: micro-batches, 1 to 32.
    compare: the name of a second one, drawn below on the same clock.
    times: milliseconds of one micro-batch on a whole rank, {"F": 1, "I": 1, "W": 1}, and "F&B" of
        an overlapped pair; ranks with several stages share them. latency: milliseconds of a
        transfer; or `machine`, a key of PLACES, and `message_mib`, MiB of a message.
    barrier: the step ends for all ranks together. memory_cap: micro-batches that a rank may hold;
        kept_for_w: the part of their activations that is kept until W. 0 for no cap.
    controls: names of those that are always visible; the others are behind "More".
    What cannot run is said in the view; ValueError only for arguments of the wrong kind.
    """
    own = None if isinstance(schedule, str) else schedule
    _whole("p", p, MOST_RANKS)
    _whole("m", m, MOST_MICRO_BATCHES)
    if machine not in PLACES:
        raise ValueError(f"machine={machine!r}: must be one of {', '.join(PLACES)}")
    times = {"F": 1.0, "I": 1.0, "W": 1.0, "F&B": 0.0} | (times or {})
    if set(times) != {"F", "I", "W", "F&B"}:
        raise ValueError(f"times={times}: its keys must be F, I, W or F&B")
    return PipelineExplorer(
        own, tuple(controls), schedule=OWN if own is not None else schedule_name(schedule), p=p,
        m=m, compare=NOTHING if compare is None else schedule_name(compare), F=times["F"],
        I=times["I"], W=times["W"], pair=times["F&B"], latency=latency, v=v, machine=machine,
        message=message_mib, barrier=barrier, cap=memory_cap, kept=kept_for_w)


def _whole(name: str, value: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{name}={value!r}: must be a whole number in 1..{most}")
