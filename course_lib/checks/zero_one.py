"""Exercise 06, task 6.2: a step of ZeRO-1, its optimizer a W-th, its traffic 2 (W-1)/W n."""

from __future__ import annotations

import copy

from . import sharded
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import LR, OPTIMIZERS, STEPS, flat
from .sharded import BYTES, ZERO, Sometimes, drawn, judge, owners, rows
from .verdicts import hints_of

CALLS = len(OPTIMIZERS) * sum(range(1, STEPS + 1))  # training steps in one run of `train`
RULES = ("no-step", "no-communication", "own-gradient", "not-divided", "divided-twice",
         "averaged-parameters", "gradients-not-cleared", "not-gathered", "new-optimizer",
         "gathered-late")


class Makes:
    """In a rank: make_optimizer(parameters), which notes what it has made."""

    def __init__(self, name: str):
        self.name, self.made = name, []

    def __call__(self, parameters):
        self.made.append(OPTIMIZERS[self.name](list(parameters), lr=LR[self.name]))
        return self.made[-1]

    def given(self) -> list:
        return [p for o in self.made for g in o.param_groups for p in g["params"]]

    def elements(self) -> int:
        """Elements that its optimizers have updated (Adam keeps two moments of each)."""
        return sum(p.numel() for p in self.given() if p.grad is not None or self.name == "Adam")

    def whole(self, model) -> int:
        """How many parameters of the model itself its optimizers have."""
        own = {id(p) for p in model.parameters()}
        return sum(id(p) in own for p in self.given())

    def moments(self) -> int:
        values = [v for o in self.made for s in o.state.values() for v in s.values()]
        return sum(v.numel() for v in values if hasattr(v, "numel") and v.dim())


def train(fn, group, model, rows):
    """In a rank: parameters after 1, 2, 3 steps with each optimizer; elements, moments
    and whole parameters of Adam.
    """
    history, kept = [], []
    for name in OPTIMIZERS:
        for steps in range(1, STEPS + 1):
            mine, make = copy.deepcopy(model), Makes(name)
            fn(mine, rows[:steps], make, group)
            history.append(flat(mine).clone())
            kept = [make.elements(), make.moments(), make.whole(mine)]
    return [history, kept]


def train_idle(fn, group, model, rows):
    return train(fn, group, model, rows)


def _run(bench: Bench, W: int, driver=train):
    model = drawn(bench, Sometimes(), 62)
    mine = rows(bench, W, (3, 2), idle=0 if driver is train_idle else -1)
    return model, mine, sharded.run(bench, W, driver, [(model, m) for m in mine])


def _trained(driver, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            model, mine, outcome = _run(bench, W, driver)
            owner = owners([sum(p.numel() for p in model.parameters())], W)
            for i, name in enumerate(OPTIMIZERS):
                got = [[values[0][i * STEPS + step] for values in outcome.values]
                       for step in range(STEPS)]
                judge(f"{name}, W = {W}", got, name, model, mine, RULES, owner=owner)

    return test


def _optimizer(bench: Bench) -> None:
    W = 4
    model, _, outcome = _run(bench, W)
    n = sum(p.numel() for p in model.parameters())
    most = -(-n // W)
    for rank, (_, (elements, moments, whole)) in enumerate(outcome.values):
        text = (f"W = {W}, {n} parameters, rank {rank}: expected the optimizer to keep moments of "
                f"at most {most} elements, got")
        if not moments:
            raise Wrong("no-optimizer", f"{text} none from make_optimizer")
        if max(elements, moments // 2) > most + W:  # a shard of each parameter rounds up more often
            verdict = "whole-parameters" if whole else "large-shards"
            verdict = "whole-optimizer" if elements >= n else verdict
            raise Wrong(verdict, f"{text} {max(elements, moments // 2)}")


def _traffic(bench: Bench) -> None:
    W = 4
    model, _, outcome = _run(bench, W)
    sizes = [p.numel() for p in model.parameters()]
    least = CALLS * 2 * (W - 1) * sum(sizes) * BYTES
    most = least + CALLS * 2 * (W - 1) * BYTES * (W + 2)  # padding, and a loss
    sent = sum(outcome.bytes_sent())
    if least <= sent <= most:
        return
    verdict = "too-little-traffic" if sent < least else _excess(outcome.trace, sum(sizes))
    raise Wrong(verdict, f"W = {W}, {CALLS} steps: expected {least} to {most} bytes sent by all "
                f"ranks together (reduce-scatter and all-gather), got {sent}")


def _excess(trace, n: int) -> str:
    """What was sent beyond the budget, by the calls of rank 0: bytes given to each collective.

    Of a list of parts the record of a call has the first one only.
    """
    given = {"all_reduce": 0, "reduce_scatter": 0, "all_gather": 0}
    for call in trace.calls(0):
        for op in given:
            parts = trace.world_size if "scatter" in op else 1
            given[op] += call.nbytes * parts * (op in call.op)
    once = 0.9 * CALLS * n * BYTES
    if given["all_reduce"] + given["reduce_scatter"] > 2 * once:
        return "reduced-twice"
    return "three-psi" if given["all_reduce"] > once else "too-much-traffic"


ZERO1 = Task("6.2", "zero1", "06_zero", (
    Subcheck("one rank: 1, 2, 3 steps of SGD and of Adam", _trained(train, 1)),
    Subcheck("two ranks, SGD and Adam", _trained(train, 2), gate=True),
    Subcheck("each rank's optimizer keeps a W-th", _optimizer, gate=True),
    Subcheck("three and four ranks, W does not divide n", _trained(train, 3, 4)),
    Subcheck("parameters without gradient, on some ranks or on all", _trained(train_idle, 1, 3)),
    Subcheck("2(W-1)/W n sent per step", _traffic),
), forbid=TORCH_COLLECTIVES + ZERO, hints=hints_of("""
    forbidden: Write the step from reduce_scatter and all_gather of course_lib.collectives.
    deadlock: Every rank makes the same calls in the same order: no collective inside an if.
    no-step: The parameters have not changed. The shard is updated; all_gather the shards and copy
        them back into the model's parameters.
    no-communication: Every rank trains a model of its own. Its shard's gradient is the mean over
        all ranks: reduce_scatter.
    own-gradient: Each shard is updated by its owner's gradient, from its own rows only. Cutting is
        not reducing: reduce_scatter(parts, group, "mean") adds the other ranks' parts.
    not-divided: reduce_scatter gives the sum over ranks. The gradient of all rows is the mean: pass
        "mean", or divide by group.size.
    divided-twice: Divided by the number of ranks twice. "mean" already divides.
    averaged-parameters: You average parameters after each rank's own update. SGD does not see the
        difference; Adam has turned each rank's own gradient into a step already. Reduce gradients.
    gradients-not-cleared: From the second step on old gradients are still in p.grad. The optimizer
        knows the shard only, so call model.zero_grad().
    not-gathered: Each rank has updated its own shard and never heard of the others': all_gather
        after the step.
    gathered-late: All gradients are those of the first parameters: the shards are gathered only
        after the last batch. all_gather them after every step, and copy them into the model.
    missing-gradient: p.grad is None where no row used the parameter. It counts as zero.
    whole-optimizer: The values are right, and every rank keeps the moments of all parameters: that
        is what ZeRO-1 saves. Give make_optimizer your shard only.
    whole-parameters: Whole parameters are dealt out to the ranks, as ZeroRedundancyOptimizer of
        PyTorch does it; whoever has the largest one keeps too much. Lay all parameters end to end
        and cut the vector into W parts: a shard has ceil(n / W) elements.
    large-shards: The shards are too large. Lay all parameters end to end and cut the vector into W
        parts: a shard has ceil(n / W) elements.
    no-optimizer: Update with the optimizer that make_optimizer([shard]) gives you, and make
        it once: its moments must live from step to step.
    reduced-twice: The gradients are reduced twice, here to the same mean. One reduce-scatter
        gives each rank all that it needs.
    new-optimizer: Adam begins anew in each step: its moments are lost. Make the optimizer once,
        before the loop.
    three-psi: An all-reduce and an all-gather move 3 (W-1)/W n. Each rank needs the sum of its own
        shard only: a reduce-scatter is half an all-reduce.
    too-much-traffic: More was sent than one reduce-scatter of the gradients and one all-gather of
        the parameters. Is something reduced twice, or sent whole?
    too-little-traffic: Too little was sent for a reduce-scatter and an all-gather in each step.
    wrong-shape: Copy the values into the parameters; their shapes stay.
    wrong-value: Is the shard the part number group.rank of the flat vector, is it the one that the
        optimizer has, and do gradients and parameters lie in the same order?
"""))


@checker(ZERO1)
def check_zero1(fn, seed=None):
    """Points for `fn(model, batches, make_optimizer, group)`: as one process on all rows."""
