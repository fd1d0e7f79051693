"""Exercise 05, task 5.3: micro-batches accumulated, reduced once."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F

from . import sharded
from .data_parallels import LIBRARY, expect_one_reduction
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import LR, OPTIMIZERS, STEPS, flat
from .sharded import BYTES, Sometimes, drawn, judge
from .verdicts import hints_of

PARTS, ROWS = 3, 8
RULES = ("no-step", "no-communication", "not-divided-by-parts", "last-part-only", "not-divided",
         "divided-twice", "averaged-parameters", "gradients-not-cleared")


def train(fn, group, model, batches):
    """In a rank: the parameters after each step with each optimizer, and how many steps it took."""
    history, stepped = [], []
    for name, make in OPTIMIZERS.items():
        mine = copy.deepcopy(model)
        optimizer = make(mine.parameters(), lr=LR[name])
        optimizer.register_step_post_hook(lambda *_: stepped.append(1))
        for parts in batches:
            fn(mine, parts, optimizer, group)
            history.append(flat(mine).clone())
    return [history, len(stepped)]


def train_idle(fn, group, model, batches):
    return train(fn, group, model, batches)


def train_watched(fn, group, model, batches):
    """One step with its memory recorded, and then one micro-batch, to compare with."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for tensor in sum(batches[0], ()):
        group.hold(tensor, "buffer")  # rows are there before anybody computes
    fn(model, batches[0], optimizer, group)
    group.mark("one part")
    F.mse_loss(model(batches[0][0][0]), batches[0][0][1]).backward()
    return []


def parts_gradient(model, parts, rule: str) -> torch.Tensor:
    for x, y in parts[-1:] if rule == "last-part-only" else parts:
        scale = 1 if rule == "not-divided-by-parts" else len(parts)
        (F.mse_loss(model(x), y) / scale).backward()
    return sharded.gradient(model)


def _run(bench: Bench, W: int, driver=train, record="calls"):
    model = drawn(bench, Sometimes(), 53)
    parts = 1 if W == 1 else PARTS
    batches = []
    for rank in range(W):
        draw, mine = bench.generator(53, W, rank), []
        for _ in range(STEPS):
            mine.append([])
            for part in range(parts):
                x = torch.randn(ROWS, 3, generator=draw).double()
                idle = driver is train_idle and rank == 0
                x[0, 0] = -abs(x[0, 0]) if idle else abs(x[0, 0])
                mine[-1].append((x, torch.randn(ROWS, 2, generator=draw).double() + rank + part))
        batches.append(mine)
    outcome = sharded.run(bench, W, driver, [(model, b) for b in batches], record)
    return model, batches, outcome


def _trained(driver, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            model, batches, outcome = _run(bench, W, driver)
            steps = STEPS * len(OPTIMIZERS)
            for rank, (_, stepped) in enumerate(outcome.values):
                if stepped > steps:
                    raise Wrong("stepped-every-time", f"W = {W}, rank {rank}: expected one "
                                f"optimizer.step() per call, {steps} in all, got {stepped}")
            for i, name in enumerate(OPTIMIZERS):
                got = [[values[0][i * STEPS + step] for values in outcome.values]
                       for step in range(STEPS)]
                judge(f"{name}, W = {W}, {len(batches[0][0])} micro-batches", got, name, model,
                      batches, RULES, gradient_of=parts_gradient)

    return test


def _one_reduction(bench: Bench) -> None:
    W = 2
    model, _, outcome = _run(bench, W)
    steps, sent = STEPS * len(OPTIMIZERS), sum(outcome.bytes_sent())
    least = steps * W * sum(p.numel() for p in model.parameters()) * BYTES
    if abs(sent / least - PARTS) < 0.2:
        raise Wrong("reduced-every-time", f"W = {W}, {PARTS} micro-batches: the gradients were "
                    f"reduced {PARTS} times a step, {sent} bytes sent instead of {least}")
    expect_one_reduction(f"W = {W}, {steps} steps", sent, least, steps * W * 4 * BYTES)


def _memory(bench: Bench) -> None:
    """Activations of one micro-batch at a time: that is what accumulation is for."""
    W = 2
    _, _, outcome = _run(bench, W, train_watched, record=True)
    for rank in range(W):
        held, peak, before = 0, 0, None
        for e in outcome.trace.program(rank):
            if e.event == "one part":
                before, peak, held = peak, 0, 0
            if e.category == "activation":
                held += e.nbytes if e.kind == "alloc" else -e.nbytes
                peak = max(peak, held)
        if before > 1.5 * peak:
            raise Wrong("all-graphs-held", f"W = {W}, rank {rank}: {before} B of activations held "
                        f"at once; one micro-batch needs {peak} B")


PARTIAL = Task("5.3", "accumulated_step", "05_data_parallel", (
    Subcheck("one rank, one micro-batch", _trained(train, 1)),
    Subcheck("two ranks, three micro-batches, SGD and Adam", _trained(train, 2), gate=True),
    Subcheck("one reduction per step", _one_reduction, gate=True, points=2),
    Subcheck("activations of one micro-batch at a time", _memory),
    Subcheck("three and four ranks, a parameter without gradient", _trained(train_idle, 3, 4)),
), forbid=TORCH_COLLECTIVES + LIBRARY, hints=hints_of("""
    forbidden: Write the step with all_reduce of course_lib.collectives.
    deadlock: Every rank makes the same calls in the same order.
    no-step: The parameters did not change: is optimizer.step() missing?
    no-communication: Every rank trains a model of its own: all_reduce the gradients, once.
    not-divided-by-parts: backward() adds the micro-batches' gradients; the gradient of the whole
        batch is their mean. Divide each loss by the number of micro-batches.
    last-part-only: The gradients are cleared before each micro-batch, so only the last one counts.
        Clear them once, before the loop.
    not-divided: all_reduce gives the sum over ranks; the gradient of all rows is the mean.
    divided-twice: Divided by the number of ranks twice.
    averaged-parameters: You average parameters after the step. SGD does not see the difference;
        Adam has turned each rank's own gradient into a step already.
    gradients-not-cleared: From step 2 on, old gradients are still in p.grad.
    missing-gradient: p.grad is None where no row used the parameter. It counts as zero.
    stepped-every-time: This is a step per micro-batch: a small batch, not accumulation. Step once,
        after the loop.
    reduced-every-time: The gradients are reduced after each micro-batch. They can be added up where
        they are: reduce once, after the last.
    reduced-twice: The values are right, and the gradients were reduced twice.
    all-graphs-held: All micro-batches' activations are held until one backward pass at the end, as
        if they were one batch. Call backward() in the loop: it frees them.
    too-much-traffic: Only the gradients travel, once.
    too-little-traffic: The gradients of all parameters have to be reduced.
    wrong-value: Gradients add up over the loop; then one mean over ranks, then one step.
"""))


@checker(PARTIAL)
def check_accumulated_step(fn, seed=None):
    """Points for `fn(model, parts, optimizer, group)`: one step on all micro-batches."""
