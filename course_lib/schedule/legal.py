"""Why a schedule cannot run, in a sentence."""

from __future__ import annotations

from collections import defaultdict

from ..waitfor import Waiter, explain
from .memory import held_after
from .ops import KINDS, Op, Placement, Schedule, as_schedule, needs, output

WORDS = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient"}


class IllegalSchedule(ValueError):
    """A schedule that cannot run; the text says why. `graph` draws a deadlock, otherwise None."""

    def __init__(self, why: str, graph: dict | None = None) -> None:
        super().__init__(why)
        self.graph = graph


def problem(schedule, placement: Placement | None = None, num_microbatches: int | None = None,
            memory_cap: float | None = None, until_i: float = 1.0, until_w: float = 1.0) -> str:
    """Why the schedule is illegal, in a sentence; empty when it is legal. See `validate`."""
    try:
        validate(schedule, placement, num_microbatches, memory_cap, until_i, until_w)
    except ValueError as error:
        return str(error)
    return ""


def validate(schedule, placement: Placement | None = None, num_microbatches: int | None = None,
             memory_cap: float | None = None, until_i: float = 1.0, until_w: float = 1.0) -> None:
    """IllegalSchedule, a ValueError, unless every rank can run its list to the end.

    The schedule: one list of Op per rank. Every stage runs every micro-batch's F, and its B or its
    I and W, once, on the rank that has the stage and after what it needs; nobody waits in a circle.
    num_microbatches: how many there should be (default: as many as are mentioned).
    memory_cap: most micro-batches that a rank may hold, counted as by `memory.held_after`.
    """
    schedule = as_schedule(schedule, placement)
    m = schedule.num_microbatches if num_microbatches is None else num_microbatches
    _check_places(schedule, m)
    _check_each_once(schedule, m)
    _check_it_ends(schedule)
    if memory_cap is not None:
        _check_memory(schedule, memory_cap, until_i, until_w)


def _check_places(schedule: Schedule, m: int) -> None:
    """Every op is one that exists, on the rank that has its stage."""
    place = schedule.placement
    if len(schedule) != place.ranks:
        raise IllegalSchedule(f"the schedule has {len(schedule)} lists, but the {place.name} "
                              f"placement has {place.ranks} ranks")
    for rank, ops in enumerate(schedule):
        for op in ops:
            if op.kind not in KINDS or len(op.kind) != 1:
                raise IllegalSchedule(f"rank {rank} lists {op}, but {op.kind!r} is none of "
                                      f"{', '.join(KINDS)}")
            for name, value, count in (("stage", op.stage, place.num_stages),
                                       ("micro-batch", op.mb, m)):
                if not 0 <= value < count:
                    raise IllegalSchedule(f"rank {rank} lists {op}, but there is no {name} {value}:"
                                          f" there are {count}, numbered from 0")
            home = place.rank(op.stage, op.mb)
            if home != rank:
                raise IllegalSchedule(f"rank {rank} lists {op}, but stage {op.stage} of micro-batch"
                                      f" {op.mb} is on rank {home} ({place.name} placement)")


def _check_each_once(schedule: Schedule, m: int) -> None:
    """F and B, or F, I and W, of every stage and micro-batch: none twice, none missing."""
    found: dict[tuple[int, int], str] = defaultdict(str)
    for rank, ops in enumerate(schedule):
        for op in ops:
            before = found[op.stage, op.mb]
            if op.kind in before:
                raise IllegalSchedule(f"rank {rank} runs {op} twice")
            clash = "B" if op.kind in "IW" else "IW" if op.kind == "B" else ""
            for kind in clash:
                if kind in before:
                    raise IllegalSchedule(f"rank {rank} runs both {op._replace(kind=kind)} and "
                                          f"{op}: a B is an I and a W already")
            found[op.stage, op.mb] += op.kind
    halves = any("I" in kinds for kinds in found.values())
    for mb in range(m):
        for stage in range(schedule.placement.num_stages):
            kinds = found[stage, mb]
            split = "I" in kinds or "W" in kinds or halves and "B" not in kinds
            for kind in "FIW" if split else "FB":
                if kind not in kinds:
                    rank = schedule.placement.rank(stage, mb)
                    raise IllegalSchedule(f"{Op(stage, kind, mb)} is missing: rank {rank} never "
                                          f"runs the {WORDS[kind]} of micro-batch {mb} on stage "
                                          f"{stage}")


def _check_own_order(schedule: Schedule) -> None:
    """What an op needs from its own rank comes before it in the rank's list.

    A list that breaks this cannot run to its end either; but this is the clearer sentence.
    """
    num_stages = schedule.placement.num_stages
    for rank, ops in enumerate(schedule):
        mine, done = {output(op): op for op in ops}, set()
        for op in ops:
            first = [Op(op.stage, "F", op.mb)] if op.kind in "BI" else []
            for need in map(output, first + needs(op, num_stages)):
                if need in mine and need not in done:
                    raise IllegalSchedule(f"rank {rank} runs {op} before {mine[need]}, which it "
                                          "needs")
            done.add(output(op))


def _check_it_ends(schedule: Schedule) -> None:
    """Run the lists, without a clock: whoever is stuck at the end waits in a circle."""
    num_stages, p = schedule.placement.num_stages, len(schedule)
    steps, at = [schedule.steps(rank) for rank in range(p)], [0] * p
    done: set[Op] = set()
    waiting: dict[Op, int] = {}  # what is needed from another rank -> who is stuck for it
    ready = list(range(p))
    while ready:
        rank = ready.pop()
        while at[rank] < len(steps[rank]):
            step = steps[rank][at[rank]]
            missing = _missing(step, done, num_stages)
            if missing:
                waiting[output(missing[1])] = rank
                break
            at[rank] += 1
            for op in map(output, step):
                done.add(op)
                if op in waiting:
                    ready.append(waiting.pop(op))
    if waiting:
        _check_own_order(schedule)
        waiters = []
        for need, rank in sorted(waiting.items(), key=lambda item: item[1]):
            op, wanted = _missing(steps[rank][at[rank]], done, num_stages)
            peer = schedule.placement.rank(need.stage, need.mb)
            waiters.append(Waiter(rank, f"{op} for {wanted}", peer))
        stuck = explain(waiters, p)
        raise IllegalSchedule("; ".join([stuck.header, *stuck.lines]), stuck.graph)


def _missing(step: tuple[Op, ...], done: set[Op], num_stages: int) -> tuple[Op, Op] | None:
    """An op of the step, and one that it needs and that has not run; None when all have."""
    for op in step:
        for need in needs(op, num_stages):
            if output(need) not in done:
                return op, need
    return None


def _check_memory(schedule: Schedule, cap: float, until_i: float, until_w: float) -> None:
    for rank, ops in enumerate(schedule):
        for op, held in zip(ops, held_after(schedule, rank, until_i, until_w)):
            if held > cap * (1 + 1e-9):
                raise IllegalSchedule(f"rank {rank} holds the activations of {held:g} micro-batches"
                                      f" from {op} on, but the cap is {cap:g}")
