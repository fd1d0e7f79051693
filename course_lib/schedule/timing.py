"""Time a schedule: its program on the one replay engine, and what a pipeline is judged by."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..machine import Machine, unit
from ..timeline import Timeline
from ..virtual_time import replay
from .legal import validate
from .memory import held_after, peak_in_flight
from .ops import Op, Placement, Schedule, as_schedule
from .programs import lower, step_label

UNIT_TIMES = {"F": 1.0, "I": 1.0, "W": 1.0}


@dataclass
class PipelineTimeline(Timeline):
    """A Timeline of a schedule. `ops[op]` is its (start, end) in seconds.

    Bubble: idle seconds of the rank with the longest total, its total being its device span (from
    the start of its first op to the end of its last) or, with `barrier`, the makespan.
    """

    schedule: Schedule | None = None
    barrier: bool = False
    ops: dict[Op, tuple[float, float]] = field(default_factory=dict)

    def span(self, rank: int) -> float:
        """Device span: seconds from the start of the rank's first op to the end of its last."""
        self._check_rank(rank)
        mine = self.schedule[rank]
        return self.ops[mine[-1]][1] - self.ops[mine[0]][0] if mine else 0.0

    def busy(self, rank: int) -> float:
        """Seconds that the rank computes."""
        self._check_rank(rank)
        return math.fsum(end - start for start, end in
                         (self.ops[step[0]] for step in self.schedule.steps(rank)))

    @property
    def bubble(self) -> float:
        """Idle seconds of the rank with the longest total."""
        total, busy = self._worst
        return total - busy

    @property
    def bubble_ratio(self) -> float:
        """Bubble over useful time: (p-1)/m for GPipe and 1F1B."""
        total, busy = self._worst
        return (total - busy) / busy

    @property
    def bubble_fraction(self) -> float:
        """Bubble over total time: (p-1)/(m+p-1) for GPipe and 1F1B. The zero-bubble papers' rate.
        """
        total, busy = self._worst
        return (total - busy) / total

    def in_flight(self, rank: int, until_i: float = 1.0, until_w: float = 1.0) -> float:
        """Most micro-batches whose activations the rank holds at once.

        Each holds `until_i` from its F to the end of its I, and `until_w` from there to the end of
        its W; in activations of one micro-batch on the whole rank (`memory.held_after`).
        """
        self._check_rank(rank)
        return peak_in_flight(self.schedule, rank, until_i, until_w)

    def in_flight_curve(self, rank: int, until_i: float = 1.0,
                        until_w: float = 1.0) -> list[tuple[float, float]]:
        """(seconds, micro-batches held) after every change; see `in_flight`."""
        self._check_rank(rank)
        return [(self.ops[op][0 if op.kind == "F" else 1], held) for op, held in
                zip(self.schedule[rank], held_after(self.schedule, rank, until_i, until_w))]

    @property
    def _worst(self) -> tuple[float, float]:
        ranks = [r for r, ops in enumerate(self.schedule) if ops]
        totals = [(self.makespan if self.barrier else self.span(r), self.busy(r)) for r in ranks]
        return max(totals, key=lambda pair: (pair[0], -pair[1]))


def time_schedule(schedule, times: Mapping[str, float] | Callable[[Op], float] | None = None,
                  latency: float = 0.0, barrier: bool = False, *, machine: Machine | None = None,
                  nbytes: int = 0, placement: Placement | None = None) -> PipelineTimeline:
    """The schedule in virtual time, on the replay engine.

    times: seconds per op (so per stage, also where a rank has several), by kind: "F", "I", "W",
        "B" (default I + W), "F&B" for an overlapped pair (default F + B); or a function of an Op,
        such as the measured times of a run. Default: 1 for F, I and W.
    latency: seconds of a transfer to another rank; `machine` with `nbytes` per message instead
        times the transfers on that machine. A rank computes while it sends and receives.
    barrier: whether the step ends for all ranks together, which makes the makespan count.
    Raises IllegalSchedule, a ValueError whose text says why, for a schedule that cannot run.
    Cost: about 5 events per op that gets a message; seconds for the 320,000 of p=64, m=512.
    """
    if not 0 <= latency < math.inf:
        raise ValueError(f"latency={latency}: must be at least 0 and finite")
    if machine is not None and latency:
        raise ValueError(f"latency={latency}: a machine brings its own; give one of the two")
    if not 0 <= nbytes < math.inf:
        raise ValueError(f"nbytes={nbytes}: must be at least 0 and finite")
    if machine is None and nbytes:
        raise ValueError(f"nbytes={nbytes}: without a machine a transfer takes `latency` whatever "
                         "its size; give machine= too")
    schedule = as_schedule(schedule, placement)
    with _no_collector():
        validate(schedule)
        trace = lower(schedule, _seconds(times), nbytes)
        timeline = replay(trace, machine or unit(latency, math.inf))
        spans = {s.event.label: (s.start, s.end) for s in timeline.spans if s.kind == "compute"}
        ops = {op: spans[step_label(step)] for rank in range(len(schedule))
               for step in schedule.steps(rank) for op in step}
        return PipelineTimeline(**vars(timeline), schedule=schedule, barrier=barrier, ops=ops)


def _seconds(times) -> Callable[[tuple[Op, ...]], float]:
    """Seconds of a step, from what the caller gave."""
    if callable(times):
        return lambda ops: sum(_positive(f"times({op})", times(op)) for op in ops)
    table = dict(UNIT_TIMES if times is None else times)
    for kind, value in table.items():
        if kind not in ("F", "B", "I", "W", "F&B"):
            raise ValueError(f"times has {kind!r}: its keys must be F, B, I, W or F&B")
        _positive(f"times[{kind!r}]", value)
    if "I" in table and "W" in table:
        table.setdefault("B", table["I"] + table["W"])
    if "F" in table and "B" in table:
        table.setdefault("F&B", table["F"] + table["B"])

    def seconds(ops: tuple[Op, ...]) -> float:
        kind = "&".join(op.kind for op in ops)
        if kind not in table:
            raise ValueError(f"times={times}: must say how long {kind} takes")
        return table[kind]

    return seconds


def _positive(name: str, value: float) -> float:
    if not 0 < value < math.inf:
        raise ValueError(f"{name}={value}: must be above 0 and finite")
    return value


@contextmanager
def _no_collector():
    """Hundreds of thousands of small objects, none in a cycle: the collector only costs time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
