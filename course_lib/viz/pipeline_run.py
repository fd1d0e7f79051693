"""`show_pipeline(run)`: a pipeline that really ran, above the ideal of its own schedule."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import replace
from itertools import groupby

from ..machine import unit
from ..schedule import Op, PipelineTimeline, Schedule, as_schedule, programs, time_schedule
from ..timeline import Timeline
from ..trace import Event, Trace
from ..virtual_time import replay
from .cells_view import trace_of
from .pipeline import explorer_document
from .pipeline_rows import PipelinePanel
from .pipeline_text import bubble_note, headline, whole_rank_times
from .show import timeline_of
from .view import View

LABEL = re.compile(r"(\d+)([FBIW])(\d+)")


def ops_of(label: str) -> tuple[Op, ...]:
    """The ops that a label names: "2F0" one, "0F3&3B1" two, anything else none."""
    found = [LABEL.fullmatch(part) for part in label.split("&")]
    return tuple(Op(int(one[1]), one[2], int(one[3])) for one in found) if all(found) else ()


def ran(timeline: Timeline, step: int) -> list[list[tuple[tuple[Op, ...], float, float]]]:
    """Per rank (ops, start, end) in the order of one step of training.

    An op is many computations in a row, one for each operation of torch.
    """
    rows = []
    for rank in range(timeline.world_size):
        seen, row = defaultdict(int), []
        spans = [s for s in timeline.of(rank) if s.kind == "compute" and ops_of(s.label)]
        for label, group in groupby(spans, key=lambda span: span.label):
            parts = list(group)
            if seen[label] == step:
                row.append((ops_of(label), parts[0].start, parts[-1].end))
            seen[label] += 1
        rows.append(row)
    if not any(rows):
        raise ValueError(f"step={step}: the run has no computation of that step whose label is an "
                         "op such as 2F0; it must be one of run_pipeline, with record=True")
    return rows


def ran_schedule(trace: Trace) -> Schedule:
    """The schedule that was run, as the first training step of the trace says."""
    rows = []
    for rank in range(trace.world_size):
        labels = [e.label for e in trace.program(rank) if e.kind == "compute"]
        rows.append(list(filter(None, map(ops_of, dict.fromkeys(labels)))))
    order = [[op for ops in row for op in ops] for row in rows]
    pairs = {ops[0]: ops[1] for row in rows for ops in row if len(ops) == 2}
    return Schedule(order, as_schedule(order).placement, pairs)


def with_times(trace: Trace, schedule: Schedule, times: dict[str, float]) -> Trace:
    """The recorded program, each op taking the given seconds of a whole rank and nothing else."""
    table = whole_rank_times(schedule, **times)
    table["B"] = table["I"] + table["W"]
    found = Trace(trace.world_size)
    for key, program in trace.programs.items():
        events = [e for e in program if e.kind in ("isend", "irecv", "send", "recv", "wait")
                  or e.kind == "compute" and ops_of(e.label)]
        found.programs[key] = kept = []
        for compute, group in groupby(events, key=lambda e: e.kind == "compute" and e.label):
            if not compute:
                kept += group
                continue
            seconds = table.get("F&B") if "&" in compute else None
            seconds = seconds or sum(table[op.kind] for op in ops_of(compute))
            kept.append(Event("compute", label=compute, seconds=seconds))
    return found


def pipeline_of(timeline: Timeline, schedule=None, step: int = 0) -> PipelineTimeline:
    """The Timeline of a run as one of a schedule, from the start of its first op.

    schedule: default the order in which the ranks ran the ops. step: which training step.
    """
    rows = ran(timeline, step)
    schedule = ran_schedule(timeline.trace) if schedule is None else as_schedule(schedule)
    zero = min(start for row in rows for _, start, _ in row)
    last = max(end for row in rows for *_, end in row)
    ops = {op: (start - zero, end - zero) for row in rows for group, start, end in row
           for op in group}
    missing = [op for rank in schedule for op in rank if op not in ops]
    if missing:
        raise ValueError(f"schedule: lists {missing[0]}, which the run has not recorded")
    names, messages = _message_names(schedule), []
    for m in sorted(timeline.messages, key=lambda m: m.start):
        lane = names[m.src, m.dst]
        if m.start >= zero and m.end <= last and lane:
            messages.append(replace(m, start=m.start - zero, end=m.end - zero, label=lane.pop(0)))
    ends = {(rank, "main"): max((end - zero for *_, end in row), default=0.0)
            for rank, row in enumerate(rows)}
    return PipelineTimeline(timeline.world_size, timeline.machine, messages=messages,
                            finished=ends, schedule=schedule, ops=ops)


def _message_names(schedule: Schedule) -> dict[tuple[int, int], list[str]]:
    """What each rank sends to each other one, in order."""
    names = defaultdict(list)
    for rank, program in enumerate(programs(schedule)):
        for kind, ops, peer in program:
            if kind == "isend":
                names[rank, peer].append(str(ops[0]))
    return names


def show_pipeline(x, schedule=None, *, times: dict[str, float] | None = None,
                  latency: float = 0.0, machine=None, step: int = 0, ideal: bool = True) -> View:
    """A recorded pipeline run, op by op, above its ideal: the same times, transfers free.

    x: a Run or a Trace of `run_pipeline`. It is shown by the clock of the run itself, which differs
        every time; replayed on `machine`; or with each op taking `times`, milliseconds of one
        micro-batch on a whole rank such as {"F": 1, "I": 1, "W": 1}, and a message `latency`.
    schedule: default the order that was run. step: which training step of the run, from 0.
    ideal: whether to draw the second one.
    """
    trace = trace_of(x)
    if times is not None:
        order = ran_schedule(trace)
        ms = {kind: times.get(kind, 1.0) * 1e-3 for kind in "FIW"}
        timeline = replay(with_times(trace, order, ms), unit(latency * 1e-3, math.inf))
    else:
        timeline = timeline_of(trace, machine, wall_clock=machine is None)
    real = pipeline_of(timeline, schedule, step)
    panels = [PipelinePanel(headline("run", real), real, 0, "run" if ideal else "")]
    notes = [bubble_note("The run", real)]
    if ideal:
        best = time_schedule(real.schedule, _measured_times(real))
        panels.append(PipelinePanel(headline("ideal", best), best, 1, "ideal"))
        notes.append(bubble_note("Its ideal, the same times and free transfers", best))
    size = f"p={len(real.schedule)}, m={real.schedule.num_microbatches}"
    clock = "given times" if times is not None else timeline.machine
    spans = " above ".join(panel.panel["title"] for panel in panels)
    title = f"A run of {size}, {clock}"
    return View(data=explorer_document(title, panels, notes, f"{title}: {spans}", messages=True))


def _measured_times(real: PipelineTimeline):
    """Seconds of each op of a run; an overlapped pair shares its time."""
    share = {op: len(ops) for rank in range(len(real.schedule))
             for ops in real.schedule.steps(rank) for op in ops}

    def seconds(op: Op) -> float:
        start, end = real.ops[op]
        return max(end - start, 1e-9) / share[op]

    return seconds
