"""Exercise 05, task 5.1: gradients of ranks that have different numbers of tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from . import sharded
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import OPTIMIZERS, STEPS, train
from .sharded import BYTES, Sometimes, drawn, judge
from .verdicts import hints_of

PADDING = -100  # F.cross_entropy leaves these out
LIBRARY = tuple(f"course_lib.data_parallel.{name}" for name in (
    "average_gradients", "average_gradients_flat", "Overlap", "token_weighted"))
RULES = ("no-step", "no-communication", "mean-of-means", "weighted-by-rows", "not-divided",
         "sums-not-divided", "divided-by-ranks", "divided-twice", "averaged-parameters",
         "gradients-not-cleared", "reduced-again")
EVEN = [(4, 4), (4, 4)]  # per rank (rows, tokens among them)
UNEVEN = [(5, 3), (3, 1), (6, 5), (2, 2)]
EMPTY = [(3, 3), (2, 0), (4, 1)]


def train_even(fn, group, model, batches):
    return train(fn, group, model, batches)


def train_empty(fn, group, model, batches):
    return train(fn, group, model, batches)


SIZES = {train_even: EVEN, train: UNEVEN, train_empty: EMPTY}


def _batches(bench: Bench, sizes: list[tuple[int, int]], idle: int):
    made = []
    for rank, (count, tokens) in enumerate(sizes):
        draw, mine = bench.generator(51, rank, count, tokens), []
        for _ in range(STEPS):
            x = torch.randn(count, 3, generator=draw).double()
            x[0, 0] = -abs(x[0, 0]) if rank == idle else abs(x[0, 0])
            y = (torch.rand(count, generator=draw) < 0.2 + 0.6 * (rank % 2)).long()
            y[tokens:] = PADDING
            mine.append((x, y))
        made.append(mine)
    return made


def token_gradient(model, batch, rule: str) -> torch.Tensor:
    """The gradient of the mean over the batch's tokens; zero if it has none."""
    x, y = batch
    if (y != PADDING).any():
        F.cross_entropy(model(x), y, ignore_index=PADDING).backward()
    return sharded.gradient(model)


def _blend(sizes):
    rows, tokens = (torch.tensor(s, dtype=torch.float64) for s in zip(*sizes))
    W = len(sizes)
    weights = {"mean-of-means": torch.ones(W) / W, "weighted-by-rows": rows / rows.sum(),
               "not-divided": torch.ones(W), "sums-not-divided": tokens,
               "divided-by-ranks": tokens / W, "divided-twice": tokens / tokens.sum() / W}

    def blend(rule: str, seen: torch.Tensor, rank: int, owner) -> torch.Tensor:
        if rule in ("no-communication", "averaged-parameters"):
            return seen[rank].clone()
        return weights.get(rule, tokens / tokens.sum()).double() @ seen

    return blend


def _run(bench: Bench, W: int, driver):
    model = drawn(bench, Sometimes(), 51)
    sizes = SIZES[driver][:W]
    batches = _batches(bench, sizes, idle=0 if driver is train_empty else -1)
    return model, sizes, batches, sharded.run(bench, W, driver, [(model, b) for b in batches])


def _trained(driver, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            model, sizes, batches, outcome = _run(bench, W, driver)
            tokens = [n for _, n in sizes]
            for i, name in enumerate(OPTIMIZERS):
                got = [[values[i * STEPS + step] for values in outcome.values]
                       for step in range(STEPS)]
                where = f"{name}, W = {W}, {tokens} tokens by rank"
                if any(torch.isnan(v).any() for step in got for v in step):
                    raise Wrong("not-a-number", f"{where}: parameters are nan")
                judge(where, got, name, model, batches, RULES, gradient_of=token_gradient,
                      blend=_blend(sizes), shares=[n / sum(tokens) for n in tokens])

    return test


def _traffic(bench: Bench) -> None:
    W = 2  # where every all-reduce sends n per rank
    model, _, _, outcome = _run(bench, W, train)
    steps = STEPS * len(OPTIMIZERS)
    least = steps * W * sum(p.numel() for p in model.parameters()) * BYTES
    expect_one_reduction(f"W = {W}, {steps} steps", sum(outcome.bytes_sent()), least,
                         steps * W * 6 * BYTES)


def expect_one_reduction(where: str, sent: int, least: int, spare: int) -> None:
    if not least <= sent <= least + spare:
        verdict = "too-little-traffic" if sent < least else "too-much-traffic"
        raise Wrong("reduced-twice" if abs(sent / least - 2) < 0.1 else verdict,
                    f"{where}: expected {least} to {least + spare} bytes sent by all ranks together"
                    f", one all-reduce of the gradients per step, got {sent}")


TOKENS = Task("5.1", "token_step", "05_data_parallel", (
    Subcheck("one rank; two with as many tokens each", _trained(train_even, 1, 2)),
    Subcheck("two ranks with different numbers of tokens", _trained(train, 2), gate=True),
    Subcheck("three and four ranks", _trained(train, 3, 4)),
    Subcheck("a rank without a token, a parameter without gradient", _trained(train_empty, 3)),
    Subcheck("one all-reduce of the gradients per step", _traffic),
), forbid=TORCH_COLLECTIVES + LIBRARY, hints=hints_of("""
    forbidden: Write the step with all_reduce of course_lib.collectives.
    deadlock: Every rank makes the same calls in the same order, also one that has no token.
    call-mismatch: A rank leaves out a call, or makes another one. A parameter without gradient
        counts as zero, and its rank still calls all_reduce.
    no-step: The parameters did not change: is optimizer.step() missing?
    no-communication: Every rank trains a model of its own: all_reduce the gradients.
    mean-of-means: You average the ranks' means. A rank with few tokens then counts as much as one
        with many. Weigh each by its number of tokens: all ranks' losses over all ranks' tokens.
    weighted-by-rows: You weigh by rows. The loss is a mean over tokens, and padding is none: count
        (y != -100).
    not-divided: all_reduce gives the sum of the ranks' gradients; each is a mean already. Weigh
        each by its share of the tokens.
    sums-not-divided: Sums of losses have to be divided by the number of tokens of all ranks.
    divided-by-ranks: Divide by the number of tokens of all ranks, not by the number of ranks.
    divided-twice: Divided by the number of ranks as well. The shares of the tokens add up to 1.
    averaged-parameters: You average parameters after the step. SGD does not see the difference;
        Adam has turned each rank's own gradient into a step already.
    gradients-not-cleared: From step 2 on, old gradients are still in p.grad.
    reduced-again: From step 2 on, the reduced gradients of the step before are still in p.grad, and
        are summed over the ranks once more. Clear them first.
    missing-gradient: p.grad is None where no row used the parameter. It counts as zero, and its
        rank still calls all_reduce.
    not-a-number: A rank without tokens divides by 0. Sum the losses (reduction="sum"), and divide
        by the number of tokens of all ranks.
    reduced-twice: The values are right, and the gradients were reduced twice.
    too-much-traffic: Only the gradients and one count travel.
    too-little-traffic: The gradients of all parameters have to be reduced.
    wrong-value: The gradient of all tokens is the sum of the ranks' summed losses, over the number
        of tokens of all ranks: one more all_reduce, of a count.
"""))


@checker(TOKENS)
def check_token_step(fn, seed=None):
    """Points for `fn(model, x, y, optimizer, group)`: one step, a mean over all ranks' tokens."""
