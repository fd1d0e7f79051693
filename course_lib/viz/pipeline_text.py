"""The schedules by the names that people know, and what is said of a timed one: both bubbles."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import schedule as library
from ..schedule import bubble_seconds
from .pipeline_rows import seconds_text


@dataclass(frozen=True)
class Known:
    """A builder, and its bubble in words: in seconds, over useful and over total time."""

    builder: str
    bubble: str
    ratio: str = ""
    fraction: str = ""
    chunks: bool = False  # whether it takes v
    general: str = ""  # the bubble in words for few micro-batches, or a W that is long

    def build(self, p: int, m: int, v: int):
        return getattr(library, self.builder)(p, m, *([v] if self.chunks else []))


S = "(p-1)(F+I+W)"
KNOWN = {
    "naive": Known("naive", "(p-1) m (F+I+W)", "p-1", "(p-1)/p"),
    "GPipe": Known("gpipe", S, "(p-1)/m", "(p-1)/(m+p-1)"),
    "1F1B": Known("one_f_one_b", S, "(p-1)/m", "(p-1)/(m+p-1)"),
    "interleaved 1F1B": Known("interleaved_1f1b", f"{S}/v", "(p-1)/(vm)", "(p-1)/(vm+p-1)", True),
    "looped BFS": Known("looped_bfs", f"{S}/v", "(p-1)/(vm)", "(p-1)/(vm+p-1)", True),
    "ZB-H1": Known("zb_h1", "(p-1)(F+I-W)", general="(p-1)(F+I) - (min(m,p)-1) min(F,W)"),
    "ZB-H2": Known("zb_h2", "(p-1)(F+I-2W)",
                   general="max(0, (p-1)(F+I) - (min(m,2p-1)-1) min(F,W))"),
    "interleaved ZB": Known("interleaved_zb", "", chunks=True),
    "ZB-V": Known("zb_v", "(p-1)(I-W)", general="max((p-1)(F+I) - (min(m,p)-1) F - "
                  "max(0, min(m,2p-1)-p) W, (p-1)(I-F)/2)"),
    "DualPipe": Known("dualpipe", "(p/2-1)(F&B+I-2W)"),
    "DualPipeV": Known("dualpipe_v", "(p-1)(F&B+I-2W)/2"),
}


def schedule_name(text: str) -> str:
    """The key of KNOWN that is meant: "1f1b", "one_f_one_b", "zb-h1", "ZB_H1", ... ValueError."""
    plain = "".join(c for c in str(text).lower() if c.isalnum())
    for name, known in KNOWN.items():
        if plain in ("".join(c for c in one.lower() if c.isalnum())
                     for one in (name, known.builder)):
            return name
    raise ValueError(f"schedule={text!r}: must be one of {', '.join(KNOWN)}, a list of lists of "
                     "Op, or a function of p and m that returns one")


def whole_rank_times(schedule, F: float, I: float, W: float,  # noqa: E741
                     pair: float = 0.0) -> dict[str, float]:
    """Seconds per op, from those of one micro-batch on a whole rank, shared by its stages.

    pair: seconds of an overlapped F&B of a whole rank; 0 for F + I + W.
    """
    share = schedule.placement.ranks / schedule.placement.num_stages
    times = {"F": F * share, "I": I * share, "W": W * share}
    return times | ({"F&B": pair * share} if pair else {})


def worst_rank(timeline) -> tuple[int, float]:
    """The rank with the longest total time, and that time: its bubble is the schedule's."""
    totals = [timeline.makespan if timeline.barrier else timeline.span(rank)
              for rank in range(timeline.world_size)]
    rank = max(range(timeline.world_size), key=lambda r: (totals[r], -timeline.busy(r)))
    return rank, totals[rank]


def headline(name: str, timeline) -> str:
    """One line: makespan and both bubbles."""
    return (f"{name}: makespan {seconds_text(timeline.makespan)}, bubble ratio "
            f"{timeline.bubble_ratio:.4f}, fraction {timeline.bubble_fraction:.4f}")


def bubble_note(name: str, timeline, until_w: float = 1.0) -> str:
    """Both definitions, with their formulas and values, and the activations in flight."""
    rank, total = worst_rank(timeline)
    bubble, busy = seconds_text(timeline.bubble), seconds_text(timeline.busy(rank))
    ratio, fraction = timeline.bubble_ratio, timeline.bubble_fraction
    short = _short_forms(name, timeline.schedule, ratio)
    held = ", ".join(f"{timeline.in_flight(rank, until_w=until_w):.4g}"
                     for rank in range(timeline.world_size))
    where = "up to the end of the last rank" if timeline.barrier else "in its device span"
    return (f"{name}: rank {rank} computes {busy} and is idle {bubble} {where}. "
            f"Bubble ratio = idle / useful time = {short[0]}{bubble} / {busy} = {ratio:.4f}. "
            f"Bubble fraction = idle / total time = {short[1]}{bubble} / {seconds_text(total)} = "
            f"{fraction:.4f}. "
            f"Micro-batches in flight, at most: {held}.")


def _short_forms(name: str, schedule, ratio: float) -> tuple[str, str]:
    """The forms of both bubbles in p, m and v alone, where the replay confirms them."""
    known, p, m = KNOWN.get(name), schedule.placement.ranks, schedule.num_microbatches
    if not known or not known.ratio:
        return "", ""
    value = p - 1 if name == "naive" else (p - 1) * p / schedule.placement.num_stages / m
    return (f"{known.ratio} = ", f"{known.fraction} = ") if math.isclose(value, ratio) else ("", "")


def closed_form_note(name: str, timeline, p: int, m: int, **how) -> str:
    """The closed form of the bubble beside the replayed one; empty where none is known."""
    known = KNOWN.get(name)
    if not known or not known.bubble:
        return ""
    v = how.pop("v") if known.chunks else how.pop("v") and 1
    try:
        formula = bubble_seconds(known.builder, p, m, v=v, **how)
    except ValueError as error:
        return f"No closed form of the bubble here: {error}."
    F, I, W = how["F"], how["I"], how["W"]  # noqa: E741
    simple = W <= F and 2 * W <= F + I and m >= 2 * p - 1
    text = known.bubble if simple or not known.general else known.general
    if math.isclose(formula, timeline.bubble, rel_tol=1e-6, abs_tol=1e-12):
        more = " + transfers" if how["latency"] else ""
        return f"Closed form: bubble = {text}{more} = {seconds_text(formula)}, as replayed."
    return (f"The closed form {text} gives {seconds_text(formula)}: it counts up to the end of the "
            "last rank, since ranks compute for unequally long.")
