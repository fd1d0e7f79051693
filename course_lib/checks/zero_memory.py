"""Exercise 06, task 6.1: bytes of model state per rank and stage, padding included."""

from __future__ import annotations

import torch

from .machinery import Bench, Subcheck, Task, Wrong, checker
from .machines import answers
from .verdicts import hints_of

NAMES = ("parameters", "gradients", "optimizer")
PER = (2, 2, 12)


def _shards(units: list[int], W: int, rule: str) -> float:
    """Elements of a rank's shards of all units."""
    match rule:
        case "no-padding":
            return sum(units) / W
        case "rounded-down":
            return sum(n // W for n in units)
        case "padded-once":
            return -(-sum(units) // W)
        case "not-sharded":
            return sum(units)
    return sum(-(-n // W) for n in units)


def _bytes(units: list[int], W: int, stage: int, rule: str = "") -> list[float]:
    """Bytes per category; `rule` is what else people do."""
    shard, whole = _shards(units, W, rule), sum(units)
    if rule == "whole-padded":
        whole = W * shard
    stage += {"one-stage-late": -1, "one-stage-early": 1}.get(rule, 0)
    sharded = [stage >= 3, stage >= 2, stage >= 1]
    if rule == "one-category":
        sharded = [stage == 3, stage == 2, stage == 1]
    per = {"no-master": (2, 2, 8), "all-32-bits": (4, 4, 8), "elements": (1, 1, 1),
           "32-bit-gradients": (2, 4, 12)}.get(rule, PER)
    return [b * (shard if cut else whole) for b, cut in zip(per, sharded, strict=True)]


RULES = ("no-master", "all-32-bits", "32-bit-gradients", "elements", "not-sharded", "one-category",
         "one-stage-late", "one-stage-early", "no-padding", "rounded-down", "padded-once",
         "whole-padded")


def _sizes(bench: Bench, key: int, W: int, rest: bool) -> list[int]:
    """Three units; with `rest`, W divides none of them, nor their sum."""
    draw = torch.randint(3, 60, (3,), generator=bench.generator(61, key)).tolist()
    return [W * n * (i + 1) + (1 if rest else 0) for i, n in enumerate(draw)]


def _stages(name: str, stages, worlds, rest: bool = False):
    def test(bench: Bench) -> None:
        cases = [(_sizes(bench, 10 * W + stage, W, rest), W, stage)
                 for W in worlds for stage in stages]
        got = answers(bench, name, cases)
        for case, mine in zip(cases, got, strict=True):
            _three(case, mine)
        rules = [r for r in RULES if all(mine == _bytes(*case, r)
                                         for case, mine in zip(cases, got))]
        for case, mine in zip(cases, got, strict=True):
            want = _bytes(*case)
            if mine != want:
                verdict = rules[0] if rules else "wrong-value"
                bad = next(i for i in range(3) if mine[i] != want[i])
                raise Wrong(verdict, f"units of {case[0]} parameters, W = {case[1]}, stage "
                            f"{case[2]}: expected {want[bad]:.0f} B of {NAMES[bad]}, got "
                            f"{mine[bad]:.10g}")

    return test


def _three(case, got) -> None:
    if not (isinstance(got, list) and len(got) == 3 and all(isinstance(v, float) for v in got)):
        raise Wrong("no-triple", f"units {case[0]}, W = {case[1]}, stage {case[2]}: expected three "
                    f"numbers, bytes of parameters, gradients and optimizer, got {str(got)[:60]}")


MEMORY = Task("6.1", "state_bytes", "06_zero", (
    Subcheck("stage 0: 2 + 2 + 12 bytes", _stages("whole", (0,), (1, 4))),
    Subcheck("stages 1, 2, 3, units that W divides", _stages("even", (1, 2, 3), (2, 4, 8)),
             gate=True),
    Subcheck("one rank shards nothing", _stages("alone", (1, 2, 3), (1,))),
    Subcheck("padding: units that W does not divide", _stages("ragged", (1, 2, 3), (2, 3, 64), True)
             ),
), forbid=("course_lib.costs.zero_memory_bytes",), hints=hints_of("""
    forbidden: Write the formula out: bytes per element times the elements that a rank holds.
    no-triple: Return three numbers of bytes: of parameters, of gradients, of the optimizer.
    elements: These are elements. Parameters and gradients take 2 bytes each, the optimizer 12.
    no-master: Adam keeps two moments, 8 bytes, and in mixed precision a 32-bit master copy of
        the parameters, 4 bytes more.
    all-32-bits: In mixed precision parameters and gradients have 16 bits: 2 bytes each. The
        32-bit master copy counts with the optimizer: 4 + 4 + 4.
    32-bit-gradients: Gradients are kept in 16 bits here: 2 bytes.
    not-sharded: No stage divides anything by W here. A shard of a unit of n has ceil(n / W).
    one-category: The stages add up: stage 2 shards the gradients and the optimizer, stage 3 all
        three.
    one-stage-late: Stage 1 shards the optimizer, stage 2 the gradients too, stage 3 all.
    one-stage-early: Stage 1 shards the optimizer only; the gradients follow in stage 2, the
        parameters in stage 3.
    no-padding: A rank holds no fraction of an element: each unit is padded to a multiple of W,
        and a shard has ceil(n / W) elements.
    rounded-down: n // W loses the rest. Pad the unit: ceil(n / W) is -(-n // W) in Python.
    padded-once: Each unit is padded and cut by itself, so round up for each unit, then add.
    whole-padded: Only what is cut is padded. What every rank holds whole has n elements.
    wrong-value: Which categories does this stage shard? Each is bytes per element times either
        the sum of n, or the sum of ceil(n / W).
"""))


@checker(MEMORY)
def check_state_bytes(fn, seed=None):
    """Points for `fn(units, world_size, stage)`: bytes of parameters, gradients, optimizer."""
