"""A timed schedule -> one panel of the "rows over time" engine: ops, idle time, what is waited for.

Everything is read off a PipelineTimeline; nothing here knows how long anything takes.
"""

from __future__ import annotations

from ..schedule import as_schedule, needs, output, validate
from ..schedule.legal import WORDS

SLIVER = 1e-4  # idle time shorter than this part of the makespan is not drawn


def seconds_text(seconds: float) -> str:
    """A time for people, in milliseconds below one second: "9 ms", "0.3451 ms", "2.5 s"."""
    return f"{seconds:.4g} s" if seconds >= 1 else f"{seconds * 1e3:.4g} ms"


def op_text(op, schedule) -> str:
    """"F0", or "2F0" where a rank has several stages."""
    place = schedule.placement
    return str(op) if place.num_stages != place.ranks or place.name == "bidirectional" else (
        f"{op.kind}{op.mb}")


class PipelinePanel:
    """Bars, messages, strips and sentences of one timeline. `panel` and `steps` as in rows.js."""

    def __init__(self, title: str, timeline, number: int = 0, name: str = "") -> None:
        self.timeline, self.schedule, self.number = timeline, timeline.schedule, number
        self.name = f"{name}: " if name else ""
        self.bars, self.steps, self.bar_of, self.least = [], [], {}, SLIVER * timeline.makespan
        self.sent = {m.label or m.send.name: i for i, m in enumerate(timeline.messages)}
        self.idle = []
        for rank in range(len(self.schedule)):
            self._ops(rank)
        for rank in range(len(self.schedule)):
            self._sentences(rank)
        self.bars += self.idle
        messages = [[m.src, m.dst, m.start, m.end] for m in timeline.messages]
        self.panel = {"title": title, "rows": [f"rank {r}" for r in range(len(self.schedule))],
                      "bars": self.bars, "messages": messages, "strips": []}

    def add_strips(self, top: float, cap: float, until_w: float) -> None:
        """A strip of the activations in flight under each rank, all on the scale 0..top."""
        for rank in range(len(self.schedule)):
            after = {0.0: 0.0} | dict(self.timeline.in_flight_curve(rank, until_w=until_w))
            series = [[t, {"activation": held} if held else {}] for t, held in after.items()]
            self.panel["strips"].append({"row": rank, "name": "activations in flight", "unit": "mb",
                                         "series": series, "top": top, "line": cap})

    def _ops(self, rank: int) -> None:
        timeline, reach = self.timeline, 0.0
        for i, step in enumerate(self.schedule.steps(rank)):
            start, end = timeline.ops[step[0]]
            self._gap(rank, reach, start, i == 0)
            for part, op in enumerate(step, 1):
                self.bar_of[op] = len(self.bars)
                self.bars.append([rank, start, end, op.kind, op_text(op, self.schedule),
                                  part if len(step) > 1 else 0])
            reach = end
        self._gap(rank, reach, timeline.makespan, True)

    def _gap(self, rank: int, start: float, end: float, outside: bool) -> None:
        """Idle time: part of the bubble, or outside the device span."""
        if end - start > self.least:
            kind = "outside" if outside and not self.timeline.barrier else "bubble"
            self.idle.append([rank, start, end, kind, "", 0])

    def _sentences(self, rank: int) -> None:
        before = None
        for step in self.schedule.steps(rank):
            start, end = self.timeline.ops[step[0]]
            what = " with ".join(f"{op}, the {WORDS[op.kind]} of micro-batch {op.mb} on stage "
                                 f"{op.stage}" for op in step)
            reason, bars, messages = self._reason(rank, step, before)
            text = (f"{self.name}rank {rank} runs {what}, for {seconds_text(end - start)}{reason}")
            own = [self.bar_of[op] for op in step]
            self.steps.append([start, text, self.number, own + bars, messages])
            before = step

    def _reason(self, rank: int, step, before) -> tuple[str, list[int], list[int]]:
        """Why the step starts when it does; the bars and messages that show it."""
        ops, place = self.timeline.ops, self.schedule.placement
        start, reach = ops[step[0]][0], ops[before[0]][1] if before else 0.0
        inputs = self._inputs(rank, step)
        if not inputs:
            own = next((need for op in step for need in needs(op, place.num_stages)), None)
            return (f"; it needs only {own} of its own rank" if own else "; it needs no input",
                    [], [])
        ready, need, arrow = max(inputs, key=lambda one: one[0])
        peer = place.rank(need.stage, need.mb)
        if start - reach > self.least:
            made = ops[need][1]
            way = f", {seconds_text(ready - made)} of it for the transfer" if (
                ready - made > self.least) else ""
            return (f"; it has waited {seconds_text(start - reach)} for {need} of rank {peer}{way}",
                    [self.bar_of[need]], arrow)
        after = f" it follows {before[-1]} at once, and" if before else ""
        spare = (f" {seconds_text(start - ready)} before" if start - ready > self.least
                 else " just then")
        return f";{after} its input from {need} of rank {peer} came{spare}", [], arrow

    def _inputs(self, rank: int, step) -> list[tuple]:
        """(when it is there, the op that made it, its message) of all inputs from other ranks."""
        place, found = self.schedule.placement, []
        for op in step:
            for need in needs(op, place.num_stages):
                if place.rank(need.stage, need.mb) == rank:
                    continue
                made = need if need in self.timeline.ops else need._replace(
                    kind="I" if need.kind == "B" else "B")
                arrow = self.sent.get(str(output(need)))
                ready = (self.timeline.ops[made][1] if arrow is None
                         else self.timeline.messages[arrow].end)
                found.append((ready, made, [] if arrow is None else [arrow]))
        return found


def order_panel(schedule) -> tuple[dict, list, int]:
    """An illegal schedule as it stands, one slot per entry, without times; panel, steps, slots."""
    bars, steps = [], []
    for rank, ops in enumerate(schedule):
        for slot, op in enumerate(ops):
            kind = op[1] if isinstance(op, tuple) and len(op) == 3 and op[1] in WORDS else "other"
            steps.append([float(slot), f"entry {slot} of rank {rank} is {op}", 0, [len(bars)], []])
            bars.append([rank, float(slot), slot + 1.0, kind, str(op), 0])
    rows = [f"rank {rank}" for rank in range(len(schedule))]
    panel = {"title": "", "rows": rows, "bars": bars, "messages": [], "strips": []}
    return panel, steps, max((len(ops) for ops in schedule), default=0)


def legal_or_why(schedule):
    """(the Schedule, "") or (None, the sentence that says why it cannot run)."""
    try:
        schedule = as_schedule(schedule)
        validate(schedule)
    except ValueError as error:
        return None, str(error)
    return schedule, ""
