"""Exercise 03, task 3.3: the size from which the ring is faster than the tree."""

from __future__ import annotations

import math

import torch

from .. import costs
from ..dry import dry_run
from ..machine import unit
from ..virtual_time import replay
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import Other
from .verdicts import hints_of

RATES = (60e-6, 2e9)  # laptop()


# The bench keeps one run for each driver: one for each subcheck.


def ask(fn, group, cases):
    """In the one rank: what fn answers to each case."""
    return [fn(*case) for case in cases]


def ask_others(fn, group, cases):
    return ask(fn, group, cases)


def ask_few(fn, group, cases):
    return ask(fn, group, cases)


def line(name: str, W: int, latency: float, bandwidth: float):
    """Seconds as a function of the bytes, by closed form."""
    form = getattr(costs, f"{name}_all_reduce_seconds")
    return lambda n: form(n, W, latency, bandwidth)


def crossing(W: int, latency: float, bandwidth: float) -> float:
    """The answer of task 3.3."""
    return costs.crossover_bytes(*(line(name, W, latency, bandwidth) for name in ("tree", "ring")))


def _ideas(W: int, latency: float, bandwidth: float) -> dict[str, float]:
    """What each wrong idea gives, by verdict."""
    steps, ring = 2 * (W - 1).bit_length(), 2 * (W - 1)
    moved, unit_bytes = ring / W, latency * bandwidth
    down = 2 * (W.bit_length() - 1)
    ideas = {
        "floor-of-log": ((ring - down), (down - moved)),
        "half-a-tree": ((ring - steps / 2), (steps / 2 - moved)),
        "half-a-ring": ((ring / 2 - steps), (steps - moved / 2)),
        "whole-vector-in-the-ring": ((ring - steps), (steps - 2)),
        "chunk-not-vector": ((ring - steps) / W, (steps - moved)),
        "bits-not-bytes": (8 * (ring - steps), (steps - moved)),
        "ring-bytes-alone": ((ring - steps), moved),
        "upside-down": ((steps - ring), (steps - moved)),
    }
    return {verdict: unit_bytes * more / fewer for verdict, (more, fewer) in ideas.items() if fewer}


def _crosses(driver, *worlds: int):
    """A subcheck: at the answer, and not before, the ring's replay is as fast as the tree's."""

    def test(bench: Bench) -> None:
        rates = [RATES, (2.0 ** -10, 2.0 ** (20 + bench.seed % 5))]
        cases = [(W, *rate) for W in worlds for rate in rates]
        for case, got in zip(cases, bench.run(1, driver, [(cases,)]).values[0]):
            _judge_crossing(case, got)

    return test


def _judge_crossing(case, got) -> None:
    W, latency, bandwidth = case
    where = f"W = {W}, {latency * 1e6:g} us, {bandwidth / 1e9:g} GB/s"
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        kind = got.kind if isinstance(got, Other) else type(got).__name__
        raise Wrong("no-number", f"{where}: expected a number of bytes, got a {kind}")
    want = crossing(*case)
    if math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-6):
        return
    text = f"{where}: expected the ring to be as fast as the tree from your size on, {got:,.0f} B"
    text += _replayed(W, latency, bandwidth, got)
    if want == 0:
        raise Wrong("below-zero" if got < 0 else "ring-never-slower", text)
    for verdict, value in _ideas(*case).items():
        if math.isclose(got, value, rel_tol=1e-6):
            raise Wrong(verdict, text)
    raise Wrong("wrong-size", text)


def _replayed(W: int, latency: float, bandwidth: float, nbytes: float) -> str:
    """What both take at that size, as a sentence; nothing where it is no size."""
    if not 0 < nbytes < 2**32:
        return ""
    times = [seconds(name, unit(latency, bandwidth), W, max(1, round(nbytes / 4 / W)) * 4 * W)
             for name in ("tree", "ring")]
    return "; replayed there, the tree takes {:.6g} s and the ring {:.6g} s".format(*times)


def seconds(name: str, machine, W: int, nbytes: int) -> float:
    """Replayed seconds of the all-reduce of that name; hierarchical by the machine's first level,
    or by nodes of about sqrt(W).
    """
    from ..viz.racers import all_reduce_by, ranks_inside  # here: no rank loads the widgets

    inner = ranks_inside(machine, W)
    trace = dry_run(lambda group: all_reduce_by(name, torch.empty(nbytes // 4), group, inner), W,
                    record="calls")
    return replay(trace, machine).makespan


CROSSOVER = Task(
    "3.3",
    "crossover",
    "03_all_reduce",
    (
        Subcheck("four, eight and sixteen ranks", _crosses(ask, 4, 8, 16), points=2, gate=True),
        Subcheck("numbers of ranks that are no power of two", _crosses(ask_others, 5, 7, 12)),
        Subcheck("two and three ranks, and one: from 0 bytes on", _crosses(ask_few, 2, 3, 1)),
    ),
    hints=hints_of("""
        error: Is something divided by zero? With one rank no algorithm sends anything: the ring is
            as fast as the tree from 0 bytes on.
        no-number: Return the number of bytes.
        floor-of-log: A tree over 5 ranks needs 3 levels: ceil(log2 W), which is
            (W - 1).bit_length().
        half-a-tree: The tree goes up and down: 2 ceil(log2 W) steps, and as many times n bytes.
        half-a-ring: The ring has two phases: 2(W-1) steps, 2(W-1)/W n bytes.
        whole-vector-in-the-ring: In the ring a rank sends 2(W-1)/W n bytes, a little less than 2n.
        chunk-not-vector: n is the size of the vector, not of a chunk.
        bits-not-bytes: Bandwidth is in bytes per second here.
        ring-bytes-alone: The tree's bytes count too: compare both lines A + B n.
        upside-down: The ring has more steps and fewer bytes. n = (more steps) * latency *
            bandwidth / (fewer vectors sent).
        below-zero: A size below 0 means that the ring is never slower: return 0.
        ring-never-slower: With two and three ranks the ring has no more steps than the tree, and
            fewer bytes: from 0 bytes on.
        wrong-size: Write both as A + B n: A the steps times latency, B the vectors sent divided
            by bandwidth. Where are they equal?
    """),
)

@checker(CROSSOVER)
def check_crossover(fn, seed=None):
    """Points for `fn(world_size, latency, bandwidth)`: bytes from which ring is as fast as tree."""
