"""Lecture 00, task 0.0, the first point: all ranks take the same decision."""

from __future__ import annotations

from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES


def ask(fn, group, flags):
    """In a rank: what fn returns for each flag in turn, as True or False."""
    return [bool(fn(flag, group)) for flag in flags]


def _questions(world_size: int) -> list[list[bool]]:
    """What each rank says in each round: nobody, everybody, each rank alone, and rank 0 once more.

    A rank that asks only when it says True itself asks in as many rounds as its neighbours, but for
    that last one: nobody answers it.
    """
    alone = [[rank == one for rank in range(world_size)] for one in range(world_size)]
    return [[False] * world_size, [True] * world_size, *alone, alone[0]]


def _same_decision(*world_sizes: int):
    def test(bench: Bench) -> None:
        for world_size in world_sizes:
            rounds = _questions(world_size)
            mine = [([said[rank] for said in rounds],) for rank in range(world_size)]
            answers = bench.run(world_size, ask, mine).values
            for said, got in zip(rounds, zip(*answers)):
                _judge(f"W = {world_size}", said, list(got), rounds, answers)

    return test


def _judge(where: str, said: list[bool], got: list[bool], rounds, answers) -> None:
    """Raise Wrong unless every rank answers whether anyone has said True."""
    want = [any(said)] * len(said)
    if got == want:
        return
    rank = next(r for r, answer in enumerate(got) if answer != want[r])
    verdict = "wrong-value"
    if all(list(a) == round_ for a, round_ in zip(zip(*answers), rounds)):
        verdict = "own-flag"
    elif all(list(a) == [all(round_)] * len(said) for a, round_ in zip(zip(*answers), rounds)):
        verdict = "all-instead-of-any"
    raise Wrong(
        verdict,
        f"{where}: the ranks say {said}; expected {want[rank]} on rank {rank}, got {got[rank]}",
    )


ANYONE = Task(
    "0.0",
    "anyone",
    "lecture 00",
    (Subcheck("all ranks answer alike: does anyone say True?", _same_decision(2, 3, 4)),),
    forbid=TORCH_COLLECTIVES,
    hints={
        "deadlock": "A rank asks, and the others do not. Call all_reduce on every rank, whatever "
        "its own flag says.",
        "own-flag": "Each rank returns its own flag, so one rank skips and the others do not. Ask "
        "all of them: put the flag into a tensor and all_reduce it.",
        "all-instead-of-any": "This asks whether everybody says True. One rank is enough: take the "
        "max, or the sum, and compare with 0.",
        "wrong-value": "A flag is 0 or 1. The max over the ranks is 1 as soon as one rank says "
        'True: all_reduce(votes, group, op="max").',
    },
)


@checker(ANYONE)
def check_anyone(fn, seed=None):
    """One point for `fn(flag, group)` that is True on every rank as soon as one flag is True."""
