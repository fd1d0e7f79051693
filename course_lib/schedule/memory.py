"""Activations in flight: what a rank holds while it runs its list, however long the ops take."""

from __future__ import annotations

from collections.abc import Iterator

from .ops import Schedule


def held_after(schedule: Schedule, rank: int, until_i: float = 1.0,
               until_w: float = 1.0) -> Iterator[float]:
    """What the rank holds once each of its ops in turn has started (F) or ended (the others).

    Counted in the activations of one micro-batch on a whole rank: a stage is 1/v of that where a
    rank has v. A micro-batch holds `until_i` from its F to the end of its I, and `until_w` from
    there to the end of its W; a B ends both. ValueError unless 0 <= until_w <= until_i.
    """
    check_until(until_i, until_w)
    ranks, num_stages = schedule.placement.ranks, schedule.placement.num_stages
    whole = rest = 0
    for op in schedule[rank]:
        whole += 1 if op.kind == "F" else -1 if op.kind in "BI" else 0
        rest += 1 if op.kind == "I" else -1 if op.kind == "W" else 0
        yield (whole * until_i + rest * until_w) * ranks / num_stages


def peak_in_flight(schedule: Schedule, rank: int, until_i: float = 1.0,
                   until_w: float = 1.0) -> float:
    """The most that the rank holds at once, in the unit of `held_after`."""
    return max(held_after(schedule, rank, until_i, until_w), default=0.0)


def check_until(until_i: float, until_w: float) -> None:
    """ValueError unless 0 <= until_w <= until_i < inf."""
    if not 0 <= until_w <= until_i < float("inf"):
        raise ValueError(f"until_i={until_i}, until_w={until_w}: must be 0 <= until_w <= until_i, "
                         "since what waits for a W is a part of what waited for the I")
