"""What the checks of exercises 08 and 09 share: asking for a schedule, and judging it.

A learner's function runs in one rank; its answer comes back as plain lists and is judged here, by
`schedule.validate`, by its time on the replay engine and by its activations in flight. The drivers
differ by name only, because the bench keeps one run per driver.
"""

from __future__ import annotations

from collections.abc import Callable

from ..schedule import Schedule, as_schedule, time_schedule, validate
from ..schedule.ops import linear
from .machinery import Bench, Wrong
from .verdicts import hints_of

BUILDERS = tuple(f"course_lib.schedule.builders.{name}" for name in (
    "naive", "gpipe", "one_f_one_b", "interleaved_1f1b", "looped_bfs", "zb_h1", "zb_h2",
    "interleaved_zb", "_chunk_rows")) + tuple(
    f"course_lib.schedule.two_way.{name}" for name in ("zb_v", "dualpipe", "dualpipe_v"))
FIRST = (4, 8)  # p and m of every task's first subcheck
OTHERS = ((4, 8), (4, 12), (4, 5), (2, 4), (3, 7), (6, 9), (8, 8), (1, 3))
FEW = ((4, 1), (4, 3), (6, 2))
SENTENCES = {  # what validate says, and the verdict that it means
    "is missing": "op-missing",
    " twice": "op-twice",
    "runs both": "op-twice",
    "is on rank": "wrong-rank",
    "there is no": "no-such-op",
    "is none of": "no-such-op",
    "lists, but": "number-of-lists",
}
HINTS = hints_of("""
    no-schedule: Return a list with one list for each rank, of Op(stage, kind, mb).
    number-of-lists: The result has one list for each of the p ranks.
    no-such-op: Stages and micro-batches are numbered from 0; kinds are F and B, or F, I and W.
    wrong-rank: Rank r runs the ops of its own stage only: Op(r, kind, mb).
    op-missing: Every rank runs all m forwards and all m backwards. What is left over at the end?
        Forwards that were taken in the warm-up leave as many backwards for the end.
    op-twice: Every op runs once. Do two of your loops overlap by one?
    illegal-order: Read the sentence above: which op waits for which? A backward comes after the
        forward of the same micro-batch, and after the same backward on the next stage.
    only-four-ranks: With 4 ranks it is right. Is there a 3 or a 4 in your code? It is p - 1 or p.
    only-eight-micro-batches: With 8 micro-batches it is right. Is there an 8 in your code? It is m.
    few-micro-batches: With fewer micro-batches than warm-up forwards there are no pairs: a warm-up
        has at most m forwards, min(..., m).
""")


# -- in the rank --------------------


def ask(fn, group, cases):
    return [_plain(fn(*case)) for case in cases]


def ask_others(fn, group, cases):
    return ask(fn, group, cases)


def ask_few(fn, group, cases):
    return ask(fn, group, cases)


def _plain(answer):
    """Lists of lists of lists; what is no list stays what it is."""
    return [_plain(item) for item in answer] if isinstance(answer, (list, tuple)) else answer


# -- in the checking process --------------------

Judge = Callable[[str, Schedule, tuple], None]  # where, the schedule, the case; raises Wrong


def each(driver, cases, *judges: Judge, place=lambda p, *_: linear(p)):
    """A subcheck: a legal schedule for every case, which all judges let pass."""

    def test(bench: Bench) -> None:
        for case, got in zip(cases, bench.run(1, driver, [(cases,)]).values[0]):
            _judge(case, got, judges, place)

    return test


def any_size(driver, cases, *judges: Judge, place=lambda p, *_: linear(p)):
    """As `each`, where the first case has been asked before: what fails with every other number of
    ranks, or of micro-batches, has a verdict of its own.
    """

    def test(bench: Bench) -> None:
        wrong: dict[tuple, Wrong] = {}
        for case, got in zip(cases, bench.run(1, driver, [(cases,)]).values[0]):
            try:
                _judge(case, got, judges, place)
            except Wrong as one:
                wrong[case] = one
        if not wrong:
            return
        first = next(iter(wrong))
        same_p = {case for case in cases[1:] if case[0] == cases[0][0]}
        other_p = set(cases[1:]) - same_p
        if cases[0] not in wrong and same_p <= set(wrong):
            raise Wrong("only-eight-micro-batches", wrong[first].message)
        if cases[0] not in wrong and other_p == set(wrong):
            raise Wrong("only-four-ranks", wrong[first].message)
        raise wrong[first]

    return test


def special(verdict: str, driver, cases, *judges: Judge, place=lambda p, *_: linear(p)):
    """As `each`, with one verdict for whatever goes wrong."""

    def test(bench: Bench) -> None:
        try:
            each(driver, cases, *judges, place=place)(bench)
        except Wrong as wrong:
            raise Wrong(verdict, wrong.message) from None

    return test


def _judge(case, got, judges, place) -> None:
    where = ", ".join(f"{name} = {value}" for name, value in zip("pmv", case))
    schedule = read(where, got, place(*case), case[1])
    for judge in judges:
        judge(where, schedule, case)


def read(where: str, got, placement, m: int) -> Schedule:
    """The answer as a legal Schedule. Wrong otherwise, with the sentence of `validate`."""
    if not isinstance(got, list) or not got or not all(
            isinstance(ops, list) and all(isinstance(op, list) for op in ops) for ops in got):
        raise Wrong("no-schedule", f"{where}: expected a list of Op for each rank, got {got!r:.60}")
    try:
        schedule = as_schedule(got, placement)
        validate(schedule, num_microbatches=m)
    except ValueError as error:
        said = str(error)
        verdict = next((code for words, code in SENTENCES.items() if words in said),
                       "no-schedule" if "must be an Op" in said else "illegal-order")
        raise Wrong(verdict, f"{where}: {said}") from None
    return schedule


def expect_kinds(kinds: str, verdict: str, text: str) -> Judge:
    """A judge: no op of another kind than these."""

    def judge(where: str, schedule: Schedule, case) -> None:
        for rank, ops in enumerate(schedule):
            for op in ops:
                if op.kind not in kinds:
                    raise Wrong(verdict, f"{where}, rank {rank}: {text}, got {op}")

    return judge


def expect_makespan(builder, verdict: str, times: dict | None = None) -> Judge:
    """A judge: at most the makespan of the schedule that `builder(*case)` makes."""

    def judge(where: str, schedule: Schedule, case) -> None:
        want = time_schedule(builder(*case), times).makespan
        got = time_schedule(schedule, times).makespan
        if got > want * (1 + 1e-9):
            words = ", ".join(f"T_{k} = {t:g}" for k, t in (times or {"F": 1, "B": 2}).items())
            raise Wrong(verdict, f"{where}, {words}: expected a makespan of {want:g}, got {got:g}; "
                                 f"{first_ops(schedule)}")

    return judge


def first_ops(schedule: Schedule, rank: int = 0, most: int = 12) -> str:
    """The beginning of a rank's list, for a message."""
    ops = schedule[rank]
    return f"rank {rank} runs {' '.join(map(str, ops[:most]))}{' ...' * (len(ops) > most)}"
