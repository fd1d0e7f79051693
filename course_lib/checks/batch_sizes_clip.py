"""Exercise 07, task 7.2: gradients clipped by their global norm, each rank with its shards."""

from __future__ import annotations

import math

import torch
from torch import nn

from . import sharded
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .verdicts import hints_of

SIZES = (60, 24)  # elements of a rank's shards of two units
MOST = 100  # bytes a rank may send per call: numbers, no gradients
CLOSE = 1e-4  # relative: with or without the 1e-6 that torch adds to the norm


class Calls:
    """In a rank, per case: what fn returned, and the gradients afterwards. One name, one run."""

    def __init__(self, name: str):
        self.__qualname__ = name

    def __call__(self, fn, group, cases):
        results = []
        for gradients, max_norm in cases:
            shards = [nn.Parameter(torch.zeros(n, dtype=_dtype(gradients))) for n in SIZES]
            for shard, gradient in zip(shards, gradients, strict=True):
                shard.grad = None if gradient is None else gradient.clone()
            norm = fn(shards, max_norm, group)
            norm = norm.item() if isinstance(norm, torch.Tensor) else norm
            results.append([norm, [s.grad for s in shards]])
        return results


def _dtype(gradients):
    return next((g.dtype for g in gradients if g is not None), torch.float64)


def _drawn(bench: Bench, W: int, scale: float = 1.0, dtype=torch.float64, missing=()):
    """Per rank the gradients of its shards; rank r's are (r + 1) times as large. `missing` lists
    (rank, shard) without gradient.
    """
    made = []
    for rank in range(W):
        draw = bench.generator(72, W, rank)
        made.append([None if (rank, i) in missing else
                     (scale * (rank + 1) * torch.randn(n, generator=draw)).to(dtype)
                     for i, n in enumerate(SIZES)])
    return made


def _squares(mine) -> float:
    return sum(float((g.double() ** 2).sum()) for g in mine if g is not None)


def _cases(bench: Bench, name: str, W: int):
    """[(gradients by rank, max_norm)], the second as a share of the norm."""
    match name:
        case "clipped":
            drawn = [(_drawn(bench, W), 0.3)]
        case "below":
            drawn = [(_drawn(bench, W), 1.5)]
        case _:
            drawn = [(_drawn(bench, W, missing=((0, 0), (0, 1), (W - 1, 1))), 0.5),
                     (_drawn(bench, W, scale=0.0), 0.5),
                     (_drawn(bench, W, scale=300.0, dtype=torch.float16), 0.5)]
    return [(by_rank, share * math.sqrt(sum(map(_squares, by_rank))) or 1.0)
            for by_rank, share in drawn]


def _clipped(name: str, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            cases = _cases(bench, name, W)
            outcome = _run(bench, name, W, cases)
            for i, (by_rank, max_norm) in enumerate(cases):
                for rank, values in enumerate(outcome.values):
                    _judge(f"W = {W}, rank {rank}", rank, by_rank, max_norm, *values[i])

    return test


def _run(bench: Bench, name: str, W: int, cases):
    return sharded.run(bench, W, Calls(name), [
        ([(by_rank[rank], max_norm) for by_rank, max_norm in cases],) for rank in range(W)])


def _judge(where: str, rank: int, by_rank, max_norm: float, norm, after) -> None:
    parts = list(map(_squares, by_rank))
    want = math.sqrt(sum(parts))
    text = f"{where}, norm {want:.4f}, max_norm {max_norm:.4f}"
    if not isinstance(norm, (int, float)):
        raise Wrong("no-number", f"{text}: expected the norm before clipping, got {norm!r}")
    half = _dtype(by_rank[0]) == torch.float16
    if not math.isclose(norm, want, rel_tol=1e-2 if half else CLOSE, abs_tol=1e-6):
        ideas = {"local-norm": math.sqrt(parts[rank]), "largest-norm": math.sqrt(max(parts)),
                 "sum-of-norms": sum(map(math.sqrt, parts)), "squared": want**2,
                 "mean-of-squares": want / math.sqrt(len(parts)), "norm-after": max_norm}
        verdict = next((v for v, idea in ideas.items() if math.isclose(norm, idea, rel_tol=CLOSE)),
                       "wrong-norm")
        raise Wrong("overflow" if not math.isfinite(norm) else verdict,
                    f"{text}: expected {want:.4f} to be returned, got {norm:.4f}")
    scale = min(1.0, max_norm / want) if want else 1.0
    for i, (was, now) in enumerate(zip(by_rank[rank], after, strict=True)):
        _judge_scaled(f"{text}, shard {i}", was, now, scale, max_norm, want,
                      1e-2 if half else CLOSE)


def _judge_scaled(where: str, was, now, scale: float, max_norm: float, norm: float, close) -> None:
    if was is None:
        if now is not None and now.abs().sum() > 0:
            raise Wrong("wrong-scale", f"{where}: a gradient has come from nowhere")
        return
    if now is None or now.shape != was.shape or torch.isnan(now).any():
        raise Wrong("not-a-number", f"{where}: the gradient is gone, or nan")
    if torch.allclose(now.double(), was.double() * scale, rtol=close, atol=1e-6 * max(1, norm)):
        return
    got = float(now.double().norm() / was.double().norm())
    own = min(1.0, max_norm / float(was.double().norm()))
    verdict = ("not-scaled" if got == 1 else "scaled-up" if got > 1 else
               "shard-by-shard" if math.isclose(got, own, rel_tol=CLOSE) else "wrong-scale")
    raise Wrong(verdict, f"{where}: expected the gradient times {scale:.6f}, got it times "
                f"{got:.6f}")


def _traffic(bench: Bench) -> None:
    W = 4
    cases = _cases(bench, "clipped", W)
    for rank, sent in enumerate(_run(bench, "clipped", W, cases).bytes_sent()):
        if sent > MOST:
            raise Wrong("gathers-everything", f"W = {W}, rank {rank}: expected at most {MOST} B "
                        f"sent, a number or two, got {sent} B")


CLIP = Task("7.2", "clip_shards", "07_batch_size", (
    Subcheck("one rank", _clipped("clipped", 1)),
    Subcheck("two and four ranks: one norm of all shards", _clipped("clipped", 2, 4), gate=True),
    Subcheck("no change below max_norm", _clipped("below", 2)),
    Subcheck("three ranks: no gradients, zeros, half precision", _clipped("edges", 3)),
    Subcheck("numbers travel, not gradients", _traffic),
), forbid=TORCH_COLLECTIVES + ("course_lib.zero.clip_gradients",), hints=hints_of("""
    forbidden: Write it out: squares, one all_reduce, one square root.
    deadlock: Every rank calls all_reduce, also one whose shards have no gradient.
    call-mismatch: Every rank calls all_reduce with the same shape and dtype, also one whose shards
        have no gradient.
    no-number: Return the global norm before clipping.
    local-norm: This is the norm of this rank's shards: every rank scales by another factor, and the
        direction of the gradient changes. Add the squares over ranks first.
    sum-of-norms: Norms do not add up, their squares do: all_reduce squares, then take the root.
    largest-norm: The norm of all shards together is no maximum. Add the squares over ranks.
    mean-of-squares: The shards are parts of one vector: the squares add up, nothing is averaged.
    squared: This is the squared norm: take the root.
    norm-after: Return the norm as it was before clipping.
    shard-by-shard: Each shard is scaled by its own norm: small parts of the gradient grow against
        large ones. One norm, one factor.
    not-scaled: The norm is right, and the gradients are as they were: multiply them in place.
    scaled-up: The norm is below max_norm, and the gradients have grown. The factor is at most 1.
    overflow: 300 squared is more than half precision holds. Square in float32 or float64.
    not-a-number: A norm of 0 divides by zero: add 1e-6, or scale only above max_norm.
    missing-gradient: shard.grad is None on some rank: nothing to square, nothing to scale.
    gathers-everything: The gradients of all ranks travel. Each rank can square its own: one number
        is enough.
    wrong-norm: The norm of all shards of all ranks: the root of the sum of all squares.
    wrong-scale: Every gradient is multiplied by max_norm / norm, if that is less than 1.
"""))


@checker(CLIP)
def check_clip_shards(fn, seed=None):
    """Points for `fn(shards, max_norm, group)`: clips by the global norm, returns it."""
