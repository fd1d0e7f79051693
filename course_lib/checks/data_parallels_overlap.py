"""Exercise 05, task 5.2: buckets of gradients reduced while the backward pass still runs."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ..launch.errors import CallMismatch, Deadlock, RankFailure
from . import sharded, verdicts
from .data_parallels import LIBRARY
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import close
from .sharded import BYTES, Layer, Sometimes, drawn, rows
from .verdicts import hints_of

DIM, LAYERS, STEPS = 4, 6, 2


class Crossing(nn.Module):
    """Two layers of one size; which of them comes first depends on the sign of x[0, 0]."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Layer(DIM), Layer(DIM)

    def forward(self, x_BD):
        first, last = (self.a, self.b) if x_BD[0, 0] > 0 else (self.b, self.a)
        return last(first(x_BD))


def chain(fn, group, model, batches):
    return _reduce(fn, group, model, list(model), batches)


def crossing(fn, group, model, batches):
    return _reduce(fn, group, model, [model.a, model.b], batches)


def idle(fn, group, model, batches):
    return _reduce(fn, group, model, [model.first, model.extra, model.last], batches)


def _reduce(fn, group, model, layers, batches):
    """In a rank: the gradients after finish() of each step. Buckets: two layers, the last first."""
    size = 1 if len(layers) < LAYERS else 2
    buckets = [[p for layer in layers[i:i + size] for p in layer.parameters()]
               for i in range(len(layers) - size, -1, -size)]
    came = []

    def arrived(p):
        came.append(p)
        if len(came) == len(list(model.parameters())):
            group.mark("last gradient")

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(arrived)
    finish = fn(buckets, group)
    if not callable(finish):
        return ["no-finish", type(finish).__name__]
    history = []
    for x, y in batches[:STEPS]:
        model.zero_grad()
        F.mse_loss(model(x), y).backward()
        group.mark("backward over")
        finish()
        history.append(sharded.gradient(model))
    return history


def _run(bench: Bench, W: int, driver=chain):
    model, width = {
        chain: (nn.Sequential(*[Layer(DIM) for _ in range(LAYERS)]), (DIM, DIM)),
        crossing: (Crossing(), (DIM, DIM)),
        idle: (Sometimes(), (3, 2)),
    }[driver]
    model = drawn(bench, model, 52)
    # Rank 0 leaves `extra` out, or crosses: x[0, 0] is negative there.
    batches = rows(bench, W, width, idle=-1 if driver is chain else 0)
    outcome = sharded.run(bench, W, driver, [(model, b) for b in batches])
    for values in outcome.values:
        if values[0] == "no-finish":
            raise Wrong("no-finish", f"W = {W}: expected a function to be called after the backward"
                        f" pass, got a {values[1]}")
    return model, batches, outcome


def _reduced(driver, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            model, batches, outcome = _run(bench, W, driver)
            for step in range(STEPS):
                seen = []
                for mine in batches:
                    model.zero_grad()
                    F.mse_loss(model(mine[step][0]), mine[step][1]).backward()
                    seen.append(sharded.gradient(model))
                for rank, values in enumerate(outcome.values):
                    _judge(f"W = {W}, rank {rank}, backward pass {step + 1}", step, rank,
                           values[step], torch.stack(seen))

    return test


def _judge(where: str, step: int, rank: int, got, seen) -> None:
    want = seen.mean(0)
    if close(got, want):
        return
    ideas = {"own-gradient": seen[rank], "not-divided": seen.sum(0),
             "divided-twice": want / len(seen)}
    verdict = next((v for v, idea in ideas.items() if close(got, idea)), "wrong-value")
    if step and verdict in ("wrong-value", "own-gradient"):
        verdict = "once-only"
    worst = int((got - want).abs().argmax())
    raise Wrong(verdict, f"{where}: expected gradient {worst} to be {want[worst]:.6f}, the mean "
                f"over ranks, got {got[worst]:.6f}")


def _overlaps(bench: Bench) -> None:
    _, _, outcome = _run(bench, 2)
    for rank in range(2):
        program = outcome.trace.program(rank)
        last = next(i for i, e in enumerate(program) if e.event == "last gradient")
        before = program[:last]
        where = f"W = 2, rank {rank}, first backward pass"
        if any(e.kind in ("send", "isend", "wait") for e in before):
            raise Wrong("blocks-the-backward", f"{where}: a bucket is reduced on the main stream, "
                        "between two computations of the backward pass")
        if not any(e.kind == "record" and "given" in e.event for e in before):
            raise Wrong("reduced-at-the-end", f"{where}: nothing was given to a stream before the "
                        "last gradient was computed")
        over = next(i for i, e in enumerate(program) if e.event == "backward over")
        if any(e.kind == "await" for e in program[:over]):
            raise Wrong("waits-in-the-hook", f"{where}: the main stream waits for a bucket before "
                        "the backward pass is over")


def _order(bench: Bench) -> None:
    test = _reduced(crossing, 2)
    try:
        test(bench)
    except (Deadlock, CallMismatch) as failure:
        raise Wrong("order-differs", verdicts.of(failure)[1]) from None
    except Wrong as wrong:
        raise Wrong("order-differs", wrong.message) from None


def _unused(bench: Bench) -> None:
    try:
        _reduced(idle, 3, 4)(bench)
    except RankFailure as failure:
        verdict, message = verdicts.of(failure)
        raise Wrong("never-started" if verdict in ("deadlock", "call-mismatch") else verdict,
                    message) from None
    except Wrong as wrong:
        verdict = "never-started" if wrong.verdict in ("wrong-value", "once-only") else ""
        raise Wrong(verdict or wrong.verdict, wrong.message) from None


def _buckets(bench: Bench) -> None:
    W, count = 2, LAYERS // 2
    model, _, outcome = _run(bench, W)
    n = sum(p.numel() for p in model.parameters()) * BYTES
    for rank, sent in enumerate(outcome.bytes_sent()):
        where = f"W = {W}, rank {rank}, {STEPS} steps, {count} buckets"
        if not STEPS * n <= sent <= STEPS * n + 64:
            verdict = "reduced-twice" if sent > STEPS * n else "too-little-traffic"
            raise Wrong(verdict, f"{where}: expected {STEPS * n} B sent, got {sent} B")
        messages = outcome.trace.messages_sent(rank)
        if messages > 2 * (W - 1) * count * STEPS:
            raise Wrong("not-in-buckets", f"{where}: expected one all-reduce a bucket, at most "
                        f"{2 * (W - 1) * count * STEPS} messages, got {messages}")


OVERLAP = Task("5.2", "reduce_in_buckets", "05_data_parallel", (
    Subcheck("one rank and two: the mean, after each of two backward passes",
             _reduced(chain, 1, 2), gate=True),
    Subcheck("a bucket leaves before the last gradient is there, and nobody waits", _overlaps,
             points=2, gate=True),
    Subcheck("one order of buckets on all ranks", _order),
    Subcheck("three and four ranks, gradients missing on one", _unused),
    Subcheck("one all-reduce a bucket", _buckets),
), forbid=TORCH_COLLECTIVES + LIBRARY, hints=hints_of("""
    forbidden: Write it from all_reduce, group.stream and register_post_accumulate_grad_hook.
    no-finish: Return a function that waits for all buckets and puts the means into p.grad.
    deadlock: Every rank gives the same buckets in the same order to its stream. On a stream use
        stream.group.
    own-gradient: p.grad is this rank's own gradient. Are the means copied back, in finish()?
    not-divided: all_reduce gives the sum; a gradient of all rows is the mean over ranks.
    divided-twice: Divided by the number of ranks twice. op="mean" already divides.
    once-only: The first backward pass is right and the second is not: finish() has to make all
        ready again, what is missing and which bucket comes next.
    reduced-at-the-end: All buckets start when the backward pass is over: correct, and nothing
        overlaps. Start a bucket in the hook of its last gradient.
    blocks-the-backward: A bucket that is reduced in the hook itself stops the backward pass. Give
        it to the stream: stream.submit(all_reduce, flat, stream.group, op="mean").
    waits-in-the-hook: You wait for a bucket while gradients are still being computed. Wait in
        finish().
    order-differs: Gradients do not arrive in the same order on all ranks, and you start buckets as
        they fill. A bucket starts when it is full and the ones before it have started.
    never-started: A parameter without gradient never calls its hook, so its bucket is never full.
        finish() starts what has not started; a missing gradient counts as zero.
    missing-gradient: A parameter that no row uses has p.grad None: it counts as zero.
    not-in-buckets: Each parameter travels alone. Lay a bucket's gradients end to end: fewer
        messages, fewer latencies.
    reduced-twice: More was sent than each bucket once. Is a bucket started in its hook and in
        finish() again?
    too-little-traffic: Not all gradients were reduced.
    wrong-value: The mean of a bucket goes back in the order in which its gradients were laid end to
        end.
"""))


@checker(OVERLAP)
def check_reduce_in_buckets(fn, seed=None):
    """Points for `fn(buckets, group)`: hooks that reduce in the background; returns finish()."""
