"""Exercise 09, task 9.2: a linear layer whose weight gradient is put off."""

from __future__ import annotations

import gc

import torch

from .machinery import Bench, Subcheck, Task, Wrong, checker
from .verdicts import hints_of, show_tensor

D, K = 5, 7
SHAPES = {"rows": ((4, D),) * 3, "blocks": ((2, 3, D), (1, 4, D))}


def in_rows(fn, group, xs, weight, dys, begin, inputs=True):
    """All F, all I, all W: what comes out of each."""
    weight, queue = torch.nn.Parameter(weight), []
    weight.grad = None if begin is None else begin.clone()
    xs = [x.requires_grad_(inputs) for x in xs]
    ys = [fn(x, weight, queue) for x in xs]
    counts = []
    for y, dy in zip(ys, dys):
        y.backward(dy)
        counts.append(len(queue))
    after_i = None if weight.grad is None else weight.grad.clone()
    steps = []
    while queue:
        entry = queue.pop(0)
        if not callable(entry):
            return [ys, [x.grad for x in xs], counts, after_i, "not callable"]
        entry()
        steps.append(None if weight.grad is None else weight.grad.clone())
    return [ys, [x.grad for x in xs], counts, after_i, steps]


def with_begin(fn, group, *given):
    return in_rows(fn, group, *given)


def in_blocks(fn, group, *given):
    return in_rows(fn, group, *given)


def first_stage(fn, group, *given):
    return in_rows(fn, group, *given, False)


def recorded(fn, group, xs, weight, dys):
    """The same, for the recorder: labels and marks; inputs and gradients die when nobody has them.
    """
    weight, queue = torch.nn.Parameter(weight), []
    while xs:
        x, dy = (group.hold(t.clone(), "activation") for t in (xs.pop(), dys.pop()))
        y = fn(x.requires_grad_(), weight, queue)
        with group.label("I"):
            y.backward(dy)
        del x, y, dy
    gc.collect()
    group.mark("after I")
    while queue:
        with group.label("W"):
            queue.pop(0)()
    gc.collect()
    group.mark("after W")


def _setup(bench: Bench, shapes):
    draw = bench.generator(len(shapes), *shapes[0])
    xs = [torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes]
    weight = torch.randn(K, D, generator=draw, dtype=torch.float64)
    dys = [torch.randn((*shape[:-1], K), generator=draw, dtype=torch.float64) for shape in shapes]
    return xs, weight, dys


def _layer(driver, shapes, begin: bool = False, inputs: bool = True):
    """A subcheck: outputs, input gradients at once, weight gradients from the queue, each once."""

    def test(bench: Bench) -> None:
        xs, weight, dys = _setup(bench, shapes)
        first = torch.ones(K, D, dtype=torch.float64) if begin else None
        got = bench.run(1, driver, [(xs, weight, dys, first)]).values[0]
        where = f"{len(xs)} micro-batch{'es' * (len(xs) > 1)} of shape {tuple(shapes[0])}"
        _outputs(where, got, xs, weight, dys, inputs)
        parts = [dy.flatten(0, -2).T @ x.flatten(0, -2) for x, dy in zip(xs, dys)]
        _weights(where, got, parts, torch.zeros(K, D).double() if first is None else first)

    return test


def _outputs(where: str, got, xs, weight, dys, inputs: bool) -> None:
    for number, (x, dy, y, dx) in enumerate(zip(xs, dys, got[0], got[1])):
        here = f"{where}, micro-batch {number}"
        if not _close(y, x @ weight.T):
            raise Wrong("wrong-output", f"{here}: expected x @ weight.T, "
                                        f"{show_tensor(x @ weight.T)}, got {show_tensor(y)}")
        if inputs and not _close(dx, dy @ weight):
            raise Wrong("no-input-gradient" if dx is None else "wrong-input-gradient",
                        f"{here}: expected x.grad {show_tensor(dy @ weight)} after the backward, "
                        f"got {show_tensor(dx)}")


def _weights(where: str, got, parts, first) -> None:
    counts, after_i, steps = got[2:]
    want = first + sum(parts)
    if steps == "not callable":
        raise Wrong("not-callable", f"{where}: expected functions in the queue, got something that "
                                    "cannot be called")
    last = steps[-1] if steps else after_i
    text = f"{where}: expected weight.grad {show_tensor(want)} after all W, got {show_tensor(last)}"
    if _close(last, first + 2 * sum(parts)):
        raise Wrong("doubled", text)
    if after_i is not None and not _close(after_i, first):
        raise Wrong("not-deferred", f"{where}: expected weight.grad to stay as it was until W, got "
                                    f"{show_tensor(after_i)} after the backward")
    if not steps or any(b <= a for a, b in zip([0, *counts], counts)):
        raise Wrong("nothing-queued", f"{where}: expected every backward to append to the queue, "
                                      f"which holds {counts} after them")
    if last is None or _close(last, first):
        raise Wrong("lost", text)
    if not _close(last, want):
        alone = any(_close(last, part) for part in (*parts, sum(parts)))
        raise Wrong("overwritten" if alone else "wrong-weight-gradient", text)
    for number, step in enumerate(steps[:-1]):
        if not _close(step, first + sum(parts[:number + 1])):
            raise Wrong("not-one-each", f"{where}: after entry {number} of the queue expected the "
                                        f"gradients of {number + 1} micro-batches, got "
                                        f"{show_tensor(step)}")


def _close(got, want) -> bool:
    return (isinstance(got, torch.Tensor) and got.shape == want.shape
            and torch.allclose(got.double(), want, rtol=1e-9, atol=1e-9))


def _trace(bench: Bench):
    return bench.run(1, recorded, [_setup(bench, SHAPES["rows"])], record=True).trace


def _work(bench: Bench) -> None:
    trace = _trace(bench)
    flops = {half: sum(e.flops for e in trace.events(0) if e.kind == "compute" and e.label == half)
             for half in "IW"}
    want = sum(2 * rows * D * K for rows, _ in SHAPES["rows"])
    if flops != {"I": want, "W": want}:
        verdict = "too-much-work" if sum(flops.values()) > 2 * want else "computed-at-once"
        raise Wrong(verdict, f"expected one matrix product in each half, {want} FLOPs in the "
                             f"backwards and {want} in the queue, got {flops['I']} and "
                             f"{flops['W']}")


def _held(bench: Bench) -> None:
    trace = _trace(bench)
    before, left = (trace.held_at(0, f"after {half}")["activation"] for half in "IW")
    if left:
        raise Wrong("held-after-w", f"expected nothing of x and dy to be held after all W, got "
                                    f"{left} B, {before} B before them")


SPLIT = Task(
    "9.2",
    "deferred_linear",
    "09_zero_bubble",
    (
        Subcheck("one micro-batch: x.grad at once, weight.grad from the queue",
                 _layer(in_blocks, SHAPES["rows"][:1]), points=2, gate=True),
        Subcheck("three micro-batches: every weight gradient is added, once",
                 _layer(with_begin, SHAPES["rows"], begin=True), points=2),
        Subcheck("one matrix product in the backward, one in the queue", _work),
        Subcheck("x and dy are let go of after W", _held),
        Subcheck("blocks [B, S, D]; an input that needs no gradient",
                 _layer(first_stage, SHAPES["blocks"], inputs=False)),
    ),
    forbid=("course_lib.pipeline.DeferWeights", "course_lib.pipeline._Linear"),
    hints=hints_of("""
        forbidden: Write the autograd Function yourself.
        error: ctx.saved_tensors can be read in the backward only: take x out there, and let the
            queued function use it. backward returns one value for each argument of forward.
        wrong-output: y = x @ weight.T; weight is [K, D].
        no-input-gradient: backward returns dy @ weight for x.
        wrong-input-gradient: The input gradient is dy @ weight, [.., K] times [K, D].
        not-callable: The queue holds functions without arguments: queue.append(function), not
            queue.append(function()).
        nothing-queued: Each backward appends a function to the queue.
        doubled: Every weight gradient is there twice: from autograd and from the queue. backward
            returns None for the weight.
        not-deferred: weight.grad changes during the backward: backward returns None for the weight,
            and what is queued adds the gradient later.
        lost: The queue ran and weight.grad did not change. A tensor that has been saved and
            unpacked is not the parameter: set the .grad of the argument weight itself.
        overwritten: Only one micro-batch is left: add to weight.grad where there is one.
        wrong-weight-gradient: The weight gradient is dy.T @ x, over all rows: flatten(0, -2) first.
            Does each function use the x and dy of its own micro-batch?
        not-one-each: Each entry adds the gradient of its own micro-batch, and of no other.
        computed-at-once: The matrix product for the weight runs in the backward, and only the sum
            is put off: put the product into the queued function.
        too-much-work: More than two matrix products run. The I half needs dy @ weight only, the W
            half dy.T @ x only; nothing goes through autograd again.
        held-after-w: Something still refers to x or dy after their W: a list of all entries, a
            global name, or a graph. What is saved needs a gradient, so the product in W makes a
            graph of its own, and weight.grad keeps it: detach x, or compute under torch.no_grad().
    """),
)


@checker(SPLIT)
def check_deferred_linear(fn, seed=None):
    """Points for `fn(x, weight, queue)`: x @ weight.T; its backward puts off weight's gradient."""
