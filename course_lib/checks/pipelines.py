"""Exercise 08, task 8.1: both definitions of the bubble. The others: a file each."""

from __future__ import annotations

import math
from numbers import Real

from ..schedule import gpipe, naive, one_f_one_b, time_schedule
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import Other
from .schedule_runs import BUILDERS
from .verdicts import hints_of

SCHEDULES = {"gpipe": gpipe, "one_f_one_b": one_f_one_b, "naive": naive}
SIZES = ((4, 8), (3, 8), (8, 32), (2, 5), (6, 1), (1, 5))
CASES = tuple((name, p, m) for name in SCHEDULES for p, m in SIZES)


def ask_pairs(fn, group, cases):
    """In the one rank: the pairs of numbers that fn answers."""
    return [_numbers(fn(*case)) for case in cases]


def _numbers(answer):
    if not isinstance(answer, (list, tuple)):
        return answer
    return [float(x) if isinstance(x, Real) else x for x in answer]


def _ideas(p: int, m: int) -> dict[str, tuple[float, float]]:
    """What each wrong idea gives for GPipe and 1F1B, by verdict."""
    ratio, fraction = (p - 1) / m, (p - 1) / (m + p - 1)
    return {
        "exchanged": (fraction, ratio),
        "ratio-twice": (ratio, ratio),
        "fraction-twice": (fraction, fraction),
        "percent": (100 * ratio, 100 * fraction),
        "p-not-p-minus-1": (p / m, p / (m + p)),
        "p-not-p-minus-1 ": (p / m, p / (m + p - 1)),
        "total-too-long": (ratio, (p - 1) / (m + p)),
        "micro-batches-ignored": (p - 1, (p - 1) / p),
        "busy-not-idle": (m / (p - 1 or 1), m / (m + p - 1)),
    }


def _bubbles(name: str):
    """A subcheck: both numbers, for all sizes, are those of the replayed schedule."""

    def test(bench: Bench) -> None:
        answers = bench.run(1, ask_pairs, [(CASES,)]).values[0]
        for (schedule, p, m), got in zip(CASES, answers):
            if schedule == name:
                _judge(name, p, m, got)

    return test


def _judge(name: str, p: int, m: int, got) -> None:
    where = f"{name}, p = {p}, m = {m}"
    if not isinstance(got, list) or len(got) != 2 or not all(isinstance(x, float) for x in got):
        shown = got.kind if isinstance(got, Other) else repr(got)
        raise Wrong("no-pair", f"{where}: expected two numbers, (ratio, fraction), got {shown:.60}")
    timeline = time_schedule(SCHEDULES[name](p, m))
    want = (timeline.bubble_ratio, timeline.bubble_fraction)
    if _same(got, want):
        return
    text = (f"{where}: expected a ratio of {want[0]:.4f} and a fraction of {want[1]:.4f}, as "
            f"replayed, got {got[0]:.4f} and {got[1]:.4f}")
    if name == "naive" and _same(got, ((p - 1) / m, (p - 1) / (m + p - 1))):
        raise Wrong("naive-as-gpipe", text)
    for verdict, idea in _ideas(p, m).items():
        if name != "naive" and _same(got, idea):
            raise Wrong(verdict.strip(), text)
    swapped = "exchanged" if _same(got[::-1], want) else "wrong-number"
    raise Wrong({"gpipe": "wrong-number", "one_f_one_b": "1f1b-is-no-faster"}.get(name, swapped),
                text)


def _same(got, want) -> bool:
    return all(math.isclose(g, w, rel_tol=1e-6, abs_tol=1e-9) for g, w in zip(got, want))


BUBBLES = Task(
    "8.1",
    "bubbles",
    "08_pipeline",
    (
        Subcheck("GPipe: idle over useful time, idle over total time", _bubbles("gpipe"), points=2,
                 gate=True),
        Subcheck("1F1B", _bubbles("one_f_one_b")),
        Subcheck("naive, with micro-batches", _bubbles("naive")),
    ),
    forbid=(*BUILDERS, "course_lib.schedule.timing.time_schedule",
            "course_lib.schedule.forms.bubble_seconds", "course_lib.virtual_time.replay"),
    hints=hints_of("""
        forbidden: Write the formulas: no schedule is built or replayed in this task.
        error: With one rank, p - 1 is 0: nothing is idle, and both numbers are 0.
        no-pair: Return both numbers: return ratio, fraction.
        exchanged: The two are exchanged. Ratio: idle over useful time. Fraction: idle over total
            time, useful and idle; it is below 1.
        ratio-twice: Both numbers are the ratio, idle over useful time. The fraction divides by the
            total, useful plus idle: m + p - 1 slots.
        fraction-twice: Both numbers are the fraction of the total time. The ratio divides by the
            useful time alone: m slots.
        percent: Give numbers, not per cent: 0.375, not 37.5.
        p-not-p-minus-1: The last rank waits for p - 1 others, not for p. With one rank nothing is
            idle.
        total-too-long: The total is m useful slots and p - 1 idle ones.
        micro-batches-ignored: This is the naive pipeline. With m micro-batches a rank is idle for
            p - 1 slots of 1/m of the batch, and works for m of them.
        busy-not-idle: This is what is busy. The bubble is what is idle.
        1f1b-is-no-faster: With free transfers 1F1B takes exactly as long as GPipe. What it saves is
            memory.
        naive-as-gpipe: In the naive pipeline the whole batch leaves a stage before the next one
            starts, in however many pieces: one rank works at a time, and the others wait.
        wrong-number: Draw GPipe with p = 2, m = 2. How many slots does rank 0 work, and how many
            does it wait?
    """),
)


@checker(BUBBLES)
def check_bubbles(fn, seed=None):
    """Points for `fn(name, p, m)`: (idle over useful, idle over total time) of a schedule."""
