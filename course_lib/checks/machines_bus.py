"""Exercise 02, task 2.3: bus bandwidth of an all-reduce, inside a node and across nodes."""

from __future__ import annotations

import torch

from .. import costs
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .machines import answers, pair
from .verdicts import hints_of

CLOSE = 1e-6  # relative; formulas agree to rounding


def _seconds(n, gpus, nodes, inside, between, rule="") -> tuple[float, float]:
    """Seconds of the flat ring and of the two-level all-reduce; `rule` is what else people do."""
    W = gpus * nodes
    slow = between if nodes > 1 and rule != "no-cliff" else inside
    if rule == "mean-of-links" and nodes > 1:
        steps = [sum(p[0] + n / W / p[1] for p in (inside,) * (gpus - 1) + (between,)) / gpus]
        flat = 2 * (W - 1) * steps[0]
    else:
        flat = costs.ring_all_reduce_seconds(n * (W if rule == "whole-vector" else 1), W, *slow)
    flat /= 2 if rule == "half-the-steps" else 1
    share = n if rule != "one-nic" else n * gpus  # what the ring between nodes divides by gpus
    two = (costs.ring_all_reduce_seconds(n, gpus, *inside)
           + costs.ring_all_reduce_seconds(share / gpus, nodes, *between))
    return flat, two


RULES = ("no-cliff", "mean-of-links", "whole-vector", "half-the-steps", "one-nic")


def _millions(bench: Bench, key: int) -> int:
    return int(torch.randint(1, 1000, (1,), generator=bench.generator(23, key)))


def _bus(name: str, which: int, shapes):
    def test(bench: Bench) -> None:
        cases = [(1e6 * _millions(bench, i), gpus, nodes, (3e-6, 450e9), (1e-5, 50e9))
                 for i, (gpus, nodes) in enumerate(shapes)]
        for case, got in zip(cases, answers(bench, name, cases), strict=True):
            where = f"{case[2]} nodes of {case[1]} GPUs, {case[0]:.0f} bytes"
            _judge_bus(where, pair(where, got)[which], which, case)

    return test


def _judge_bus(where: str, got: float, which: int, case) -> None:
    n, W = case[0], case[1] * case[2]
    factor = 2 * (W - 1) / W

    def is_of(rule, scale=1.0):
        return abs(got / (n * scale / _seconds(*case, rule)[which]) - 1) < CLOSE

    if is_of("", factor):
        return
    verdict = next((rule for rule in RULES if is_of(rule, factor)), "wrong-value")
    verdict = "algorithm-bandwidth" if is_of("") else "seconds" if abs(
        got / _seconds(*case)[which] - 1) < CLOSE else verdict
    what = ("flat ring", "two levels")[which]
    raise Wrong(verdict, f"{where}, {what}: expected "
                f"{n * factor / _seconds(*case)[which] / 1e9:.2f} GB/s, got {got / 1e9:.2f}")


BUS = Task("2.3", "bus_bandwidths", "02_machines", (
    Subcheck("one node: both are the ring of the node", _bus("one", 0, [(8, 1), (4, 1)]),
             gate=True),
    Subcheck("several nodes, flat ring", _bus("several", 0, [(8, 2), (8, 4), (4, 3)]), points=2),
    Subcheck("several nodes, two levels", _bus("several", 1, [(8, 2), (8, 4), (4, 3)]), points=2),
), forbid=tuple(f"course_lib.costs.{name}" for name in (
    "ring_all_reduce_seconds", "hierarchical_all_reduce_seconds", "bus_bandwidth")),
    hints=hints_of("""
    forbidden: Write the seconds out: steps times (latency + bytes / bandwidth).
    no-pair: Return two numbers in bytes per second: of the flat ring, and of the two levels.
    seconds: These are the seconds. Bus bandwidth is 2 (W - 1) / W * n divided by them.
    algorithm-bandwidth: n / seconds is the algorithm's bandwidth. Times 2 (W - 1) / W it becomes
        the bus bandwidth, which does not depend on W.
    no-cliff: In every step of the flat ring some messages leave their node, and all ranks wait for
        those: with more than one node a step takes as long as on a NIC.
    mean-of-links: A step ends when its slowest message has arrived, so the mean says nothing.
    whole-vector: A ring sends chunks: n / W bytes in each step.
    half-the-steps: W - 1 steps are the reduce-scatter alone; the all-gather takes as many again.
    one-nic: Between nodes each GPU sends only its own n / gpus, over its own NIC.
    wrong-value: Flat: 2 (W - 1) steps of n / W bytes, W = gpus * nodes. Two levels: 2 (gpus - 1)
        steps of n / gpus inside, then 2 (nodes - 1) steps of n / gpus / nodes between nodes.
"""))


@checker(BUS)
def check_bus_bandwidths(fn, seed=None):
    """Points for `fn(n, gpus, nodes, inside, between)`: bus bandwidth of two all-reduces."""
