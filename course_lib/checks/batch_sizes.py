"""Exercise 07, task 7.1: the gradient noise scale from the gradients that the ranks have anyway."""

from __future__ import annotations

import math

import torch

from . import sharded
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .sharded import BYTES
from .verdicts import hints_of

ELEMENTS = 40
RULES = ("mean-of-ratios", "biased-norm", "last-step-only", "in-batches", "in-global-batches",
         "inverted", "sum-as-big", "own-small", "not-squared", "exchanged", "one-rank-less")


class Calls:
    """In a rank: the result, and the gradients after the call. One name, one run."""

    def __init__(self, name: str):
        self.__qualname__ = name

    def __call__(self, fn, group, gradients, batch):
        result = fn(gradients, batch, group)
        value = result.item() if isinstance(result, torch.Tensor) else result
        return [value, gradients]


def _gradients(bench: Bench, W: int, steps: int, noise: float) -> list[list[torch.Tensor]]:
    """Per rank, one gradient [n] a step: a common part, and noise of the rank's own rows."""
    draw = bench.generator(71, W, steps)
    common = torch.randn(ELEMENTS, generator=draw).double()
    return [[common + noise * torch.randn(ELEMENTS, generator=draw).double()
             for _ in range(steps)] for _ in range(W)]


def estimate(gradients, batch: int, rank: int = 0, rule: str = "") -> float:
    """B_simple = tr(Sigma) / |G|^2 in rows; `rule` is what else people do."""
    W, B = len(gradients), batch * len(gradients)
    power = 1 if rule == "not-squared" else 2
    whole = [torch.stack(step) for step in zip(*gradients, strict=True)]  # per step [W, n]
    small = [(g.norm(dim=1) ** power).mean().item() for g in whole]
    if rule == "own-small":
        small = [(g[rank].norm() ** power).item() for g in whole]
    big = [(g.mean(0).norm() ** power).item() * (W**2 if rule == "sum-as-big" else 1)
           for g in whole]
    if rule == "last-step-only":
        small, big = small[-1:], big[-1:]
    b, B = (B, batch) if rule == "exchanged" else (batch, B)
    signal = [(B * y - b * x) / (B - b) for x, y in zip(small, big)]
    noise = [(x - y) / (1 / b - 1 / B) for x, y in zip(small, big)]
    if rule == "mean-of-ratios":
        return sum(n / s for n, s in zip(noise, signal)) / len(noise)
    ratio = sum(noise) / sum(big if rule == "biased-norm" else signal)
    if rule == "inverted":
        return 1 / ratio
    return ratio * {"in-batches": 1 / b, "in-global-batches": 1 / B,
                    "one-rank-less": (W - 1) / W}.get(rule, 1)


def _estimated(name: str, steps: int, noise: float, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            _judge(f"W = {W}, {steps} steps of {4 + W} rows a rank", bench, W, steps, noise, name)

    return test


def _run(bench: Bench, W: int, steps: int, noise: float, name: str):
    gradients = _gradients(bench, W, steps, noise)
    outcome = sharded.run(bench, W, Calls(name), [(mine, 4 + W) for mine in gradients])
    return gradients, outcome


def _judge(where: str, bench: Bench, W: int, steps: int, noise: float, name: str) -> None:
    gradients, outcome = _run(bench, W, steps, noise, name)
    for rank, (got, after) in enumerate(outcome.values):
        want = estimate(gradients, 4 + W)
        text = f"{where}, rank {rank}: expected a noise scale of {want:.4f} rows, got"
        if not isinstance(got, (int, float)):
            raise Wrong("no-number", f"{text} {str(got)[:40]}")
        if not math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-9):
            ideas = (r for r in RULES if noise and math.isclose(
                got, estimate(gradients, 4 + W, rank, r), rel_tol=1e-6))
            raise Wrong(next(ideas, "wrong-value"), f"{text} {got:.4f}")
        if not all(map(torch.equal, after, gradients[rank])):
            raise Wrong("changed-gradients", f"{where}, rank {rank}: the gradients have changed")


def _traffic(bench: Bench) -> None:
    W, steps = 2, 5
    _, outcome = _run(bench, W, steps, 0.5, "several")
    least = steps * ELEMENTS * BYTES
    for rank, sent in enumerate(outcome.bytes_sent()):
        if not least <= sent <= least + steps * 4 * BYTES:
            verdict = "too-much-traffic" if sent > least else "too-little-traffic"
            raise Wrong(verdict, f"W = {W}, rank {rank}, {steps} steps: expected {least} B and "
                        f"a few numbers sent, one all-reduce of each gradient, got {sent} B")


NOISE = Task("7.1", "noise_scale", "07_batch_size", (
    Subcheck("two ranks, one step", _estimated("one", 1, 0.5, 2)),
    Subcheck("two and four ranks, five steps", _estimated("several", 5, 0.5, 2, 4), points=2,
             gate=True),
    Subcheck("equal gradients on all ranks: no noise", _estimated("none", 2, 0.0, 3)),
    Subcheck("one all-reduce of each gradient", _traffic),
), forbid=TORCH_COLLECTIVES + ("course_lib.costs.batch.noise_scale",), hints=hints_of("""
    forbidden: Write the estimate out: two squared norms, two equations.
    no-number: Return one number, the noise scale in rows.
    mean-of-ratios: A mean of ratios is biased: |G|^2 is noisy and stands below. Average both
        estimates over the steps first, then divide.
    biased-norm: The squared norm of the mean gradient still holds noise, tr(Sigma) / B. Use the
        estimate of |G|^2 from both batches.
    last-step-only: Only the last step is in it: one step's estimate is far too noisy.
    in-batches: This is in units of a rank's batch. The sizes are `batch` and group.size * batch
        rows.
    in-global-batches: This is in units of the global batch; rows are asked for.
    inverted: Noise over signal: tr(Sigma) / |G|^2.
    sum-as-big: all_reduce gives the sum over ranks. The gradient of the big batch is the mean.
    own-small: Each rank has another result. Average the small batches' squared norms over ranks.
    not-squared: Squared norms are averaged, |g|^2.
    exchanged: The small batch is one rank's; its squared norm is the larger one.
    one-rank-less: 1/b - 1/B has the factor (W-1)/W in it already.
    changed-gradients: all_reduce works in place: give it a clone.
    too-much-traffic: A rank needs the mean gradient, not everybody's: one all_reduce a step, and
        one number.
    too-little-traffic: The big batch's gradient is the mean over ranks: all_reduce it in each step.
    wrong-value: small = mean over ranks of |g|^2, big = |mean over ranks of g|^2, B = W * batch;
        |G|^2 = (B big - b small) / (B - b), tr(Sigma) = (small - big) / (1/b - 1/B).
"""))


@checker(NOISE)
def check_noise_scale(fn, seed=None):
    """Points for `fn(gradients, batch, group)`: tr(Sigma) / |G|^2 in rows, from two batch sizes."""
