"""From a schedule to what each rank does: its ops, with the messages around them, and the events.

`programs` is read twice, by `lower` here and by the engine that runs a pipeline in real processes,
so what is timed and what runs are the same program:

- The receive of an op's input is posted when the op before it on that rank starts, and waited for
  when the op itself is due. Sends never block.
- Messages of one pair of ranks are received in the order in which they are sent, whatever they
  carry: to post a receive is to post those of the messages sent before it, too.
- A send is waited for as soon as something that came back proves that it has arrived, so that its
  buffer can go; such a wait never blocks. What is left is waited for at the end.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from heapq import heappop, heappush
from typing import NamedTuple

from ..trace import MAIN, Event, Trace
from .ops import Op, Placement, Schedule, as_schedule, needs, output


class Action(NamedTuple):
    """One thing that a rank does. kind: irecv, isend, received, sent (waits for them), or run.

    `ops` are what is computed: one, or an overlapped pair. For a message it is the one op whose
    output travels, named as by `output` (I also for the gradient of a B); `peer` is the other rank.
    """

    kind: str
    ops: tuple[Op, ...]
    peer: int = -1


def programs(schedule, placement: Placement | None = None) -> list[list[Action]]:
    """What every rank does, in order. The schedule must be legal, see `validate`."""
    schedule = as_schedule(schedule, placement)
    routes = _Routes(schedule)
    return [_program(rank, routes) for rank in range(len(schedule))]


class _Routes:
    """Who makes what, who reads it, and what goes from rank to rank in which order."""

    def __init__(self, schedule: Schedule) -> None:
        num_stages = schedule.placement.num_stages
        self.steps = [schedule.steps(rank) for rank in range(len(schedule))]
        where = [(rank, k, op) for rank, steps in enumerate(self.steps)
                 for k, step in enumerate(steps) for op in step]
        self.made = {output(op): (rank, k) for rank, k, op in where if op.kind != "W"}
        self.read: dict[Op, tuple[int, int]] = {}  # by another rank
        self.inputs = [[[] for _ in steps] for steps in self.steps]
        for rank, k, op in where:
            for need in map(output, needs(op, num_stages)):
                src = self.made[need][0]
                if src != rank:
                    self.inputs[rank][k].append((src, need))
                    self.read[need] = (rank, k)
        self.lanes: dict[tuple[int, int], list[Op]] = defaultdict(list)
        for rank, _, op in where:
            if op.kind != "W" and output(op) in self.read:
                self.lanes[rank, self.read[output(op)][0]].append(output(op))


def _program(rank: int, routes: _Routes) -> list[Action]:
    actions: list[Action] = []
    inputs, steps = routes.inputs[rank], routes.steps[rank]
    coming = {src: iter(lane) for (src, dst), lane in routes.lanes.items() if dst == rank}
    posted: set[Op] = set()
    away: dict[int, list] = defaultdict(list)  # peer -> heap of (step that reads it, serial, op)

    def post(k: int) -> None:
        for src, need in inputs[k] if k < len(steps) else ():
            while need not in posted:
                op = next(coming[src])
                posted.add(op)
                actions.append(Action("irecv", (op,), src))

    def settle(peer: int, proof: float) -> None:
        while away[peer] and away[peer][0][0] <= proof:
            actions.append(Action("sent", (heappop(away[peer])[2],), peer))

    post(0)
    for k, step in enumerate(steps):
        actions += [Action("received", (need,), src) for src, need in inputs[k]]
        for src, need in inputs[k]:
            settle(src, routes.made[need][1])
        post(k + 1)
        actions.append(Action("run", step))
        for op in map(output, step):
            if op in routes.read and op.kind != "W":
                peer, reading = routes.read[op]
                actions.append(Action("isend", (op,), peer))
                heappush(away[peer], (reading, len(actions), op))
    for peer in sorted(away):
        settle(peer, float("inf"))
    return actions


def lower(schedule, seconds, nbytes: int = 0, dtype: str = "float32", channel: str = "world",
          placement: Placement | None = None) -> Trace:
    """The Trace that a run of the schedule would record, without its clock and its memory.

    seconds: of a step, called with its ops (one, or an overlapped pair); a step's label is its op,
    "2F0", or "0F3&3B1". nbytes: of every message, what one stage hands to the next (b*s*h*bytes).
    """
    schedule = as_schedule(schedule, placement)
    trace = Trace(len(schedule))
    for rank, program in enumerate(programs(schedule)):
        events: list[Event] = []
        came: dict[Op, int] = {}  # message received -> number of its request
        went: dict[Op, int] = {}
        for kind, ops, peer in program:
            if kind == "run":
                events.append(Event("compute", label=step_label(ops), seconds=seconds(ops)))
            elif kind == "received":
                events.append(_wait(came[ops[0]]))
            elif kind == "sent":
                events.append(_wait(went[ops[0]]))
            else:
                number = len(came) + len(went)
                (came if kind == "irecv" else went)[ops[0]] = number
                events.append(Event(kind, peer=peer, nbytes=nbytes, dtype=dtype, channel=channel,
                                    requests=(number,), name=str(ops[0])))
        trace.programs[rank, MAIN] = events
    return trace


def step_label(ops: tuple[Op, ...]) -> str:
    """The label of the computation of one op, "2F0", or of an overlapped pair, "0F3&3B1"."""
    return str(ops[0]) if len(ops) == 1 else "&".join(map(str, ops))


@lru_cache(maxsize=4096)
def _wait(number: int) -> Event:
    """Waits carry nothing but the number, so ranks can share them."""
    return Event("wait", requests=(number,))
