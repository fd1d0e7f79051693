"""Exercise 03, task 3.4: the algorithm for a situation, judged by its replayed time."""

from __future__ import annotations

import torch

from .. import collectives
from ..machine import dgx_h100, pcie_server
from .all_reduces_crossover import ask, seconds
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import Other
from .verdicts import hints_of

SITUATIONS = {  # machine, ranks, sizes in bytes to draw from
    "a metric in one node": (dgx_h100(), 8, (2**10, 2**11, 2**12)),
    "a large gradient in two nodes": (dgx_h100(2), 16, (2**26, 2**27, 2**28)),
    "a large gradient in a PCIe server": (pcie_server(), 8, (2**26, 2**27, 2**28)),
}
NAMES = tuple(sorted(name.removesuffix("_all_reduce") for name in collectives.__all__
                     if name.endswith("_all_reduce")))


def _asked(bench: Bench) -> dict:
    """{situation: (machine, W, bytes, the answer)}."""
    cases = []
    for number, (machine, W, sizes) in enumerate(SITUATIONS.values()):
        drawn = int(torch.randint(len(sizes), (), generator=bench.generator(number)))
        cases.append((machine, W, sizes[drawn]))
    answers = bench.run(1, ask, [(cases,)]).values[0]
    return {name: (*case, got) for name, case, got in zip(SITUATIONS, cases, answers)}


def _names(bench: Bench) -> None:
    for situation, (*_, got) in _asked(bench).items():
        if not isinstance(got, str) or got not in NAMES:
            shown = got.kind if isinstance(got, Other) else repr(got)
            raise Wrong("no-name", f"{situation}: expected one of {', '.join(NAMES)}, got {shown}")


def _within(situation: str, share: float, verdict: str):
    """A subcheck: the replay of what was chosen takes at most `share` times the best one's."""

    def test(bench: Bench) -> None:
        machine, W, nbytes, got = _asked(bench)[situation]
        if got not in NAMES:
            raise Wrong("no-name", f"expected one of {', '.join(NAMES)}")
        if not hasattr(bench, "times"):
            bench.times = {}
        times = bench.times.setdefault(
            situation, {name: seconds(name, machine, W, nbytes) for name in NAMES})
        best = min(times.values())
        if times[got] > share * best:
            raise Wrong(
                verdict,
                f"{W} ranks on {machine.name}, {nbytes:,} B: {got} takes {times[got] * 1e3:.4f} ms,"
                f" {times[got] / best:.2f} times the best",
            )

    return test


CHOOSE = Task(
    "3.4",
    "choose",
    "03_all_reduce",
    (
        Subcheck("an algorithm in each situation", _names, points=0, gate=True),
        *(Subcheck(f"{situation}: {words}", _within(situation, share, verdict))
          for situation, verdict in zip(SITUATIONS, ("latency", "slow-wire", "shared-wire"))
          for words, share in (("at most 1.5 times the best", 1.5), ("the best, or 5 %", 1.05))),
    ),
    forbid=("course_lib.dry.dry_run", "course_lib.virtual_time.replay"),
    hints=hints_of("""
        forbidden: Decide by closed forms, or by what the machine says of itself: no dry run, no
            replay.
        no-name: Return the name of an algorithm, without _all_reduce, such as "ring".
        latency: A few KiB: every message costs its latency and hardly more. Which algorithm has the
            fewest steps of all? It is the one that all_reduce itself uses for short vectors.
        slow-wire: A large vector in two nodes: the NICs are slow, and there is one for each GPU.
            Which algorithm takes the fewest bytes out of a node, through all of them at once?
        shared-wire: The four GPUs of a PCIe switch share one wire to the CPU. Rails that share a
            wire queue for it: set(machine.route(0, 4).resources) & set(machine.route(1,
            5).resources). Which algorithm sends neighbours' messages only?
    """),
)


@checker(CHOOSE)
def check_choose(fn, seed=None):
    """Points for `fn(machine, world_size, nbytes)`: the name of a fast algorithm; by replay."""
