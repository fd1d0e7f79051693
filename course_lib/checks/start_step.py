"""Exercise 00, task 0.2: make data parallelism equal to one process."""

from __future__ import annotations

import torch

from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import OPTIMIZERS, RULES, STEPS, close, followed, simulate, train
from .verdicts import hints_of


def _setup(bench: Bench, world_size: int):
    """The model, and per rank its (x, y) of each step: 4 rows a rank, float64."""
    draw = bench.generator(world_size)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)
    ).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=draw, dtype=torch.float64))
    rows = [
        [
            (
                torch.randn(4, 3, generator=draw).double(),
                torch.randn(4, 2, generator=draw).double() + 2 * rank,
            )
            for _ in range(STEPS)
        ]
        for rank in range(world_size)
    ]
    return model, rows


def _trained(names: tuple[str, ...], *world_sizes: int):
    def test(bench: Bench) -> None:
        for world_size in world_sizes:
            model, rows = _setup(bench, world_size)
            outcome = bench.run(world_size, train, [(model, mine) for mine in rows])
            for name in names:
                first = list(OPTIMIZERS).index(name) * STEPS
                got = [[values[first + step] for values in outcome.values] for step in range(STEPS)]
                _same_as_one(
                    f"{name}, W = {world_size}", got, name, model, rows, sum(outcome.bytes_sent())
                )

    return test


def _same_as_one(where: str, got, name: str, model, rows, sent: int) -> None:
    want = simulate("right", name, model, rows)
    for step, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        for rank, (mine, right) in enumerate(zip(ours, theirs, strict=True)):
            if close(mine, right):
                continue
            worst = int((mine - right).abs().argmax())
            verdict = next(
                (rule for rule in RULES if followed(rule, name, model, rows, got)), "wrong-value"
            )
            if verdict == "local":
                verdict = "reduced-too-late" if sent else "no-communication"
            raise Wrong(
                verdict,
                f"{where}, after step {step + 1}, rank {rank}: expected parameter {worst} to be "
                f"{right[worst]:.6f}, as in one process on the full batch, got {mine[worst]:.6f}",
            )


def _traffic(bench: Bench) -> None:
    """All ranks together send what one all-reduce of the gradients costs per step, 2(W-1)n."""
    world_size = 4
    model, rows = _setup(bench, world_size)
    outcome = bench.run(world_size, train, [(model, mine) for mine in rows])
    steps = STEPS * len(OPTIMIZERS)
    sizes = [p.numel() for p in model.parameters()]
    least = steps * 2 * (world_size - 1) * sum(sizes) * 8
    # Chunks of a ring are rounded up, and two numbers more per step, such as the loss, are welcome.
    most = least + steps * 2 * (world_size - 1) * 8 * (world_size * len(sizes) + 2 * world_size)
    sent = sum(outcome.bytes_sent())
    if not least <= sent <= most:
        raise Wrong(
            "too-much-traffic" if sent > most else "no-communication",
            f"W = {world_size}, {steps} steps: expected {least} to {most} bytes sent by all ranks "
            f"together (one all-reduce of the gradients per step), got {sent}",
        )


STEP = Task(
    "0.2",
    "data_parallel_step",
    "00_start",
    (
        Subcheck("one rank, 3 steps of SGD and of Adam", _trained(("SGD", "Adam"), 1)),
        Subcheck("two ranks, SGD", _trained(("SGD",), 2), gate=True),
        Subcheck("two ranks, Adam", _trained(("Adam",), 2)),
        Subcheck("three and four ranks, SGD and Adam", _trained(("SGD", "Adam"), 3, 4), points=2),
        Subcheck("one all-reduce of the gradients per step", _traffic),
    ),
    forbid=TORCH_COLLECTIVES,
    hints=hints_of("""
        forbidden: The calls of torch.distributed are off in this task. Use all_reduce of
            course_lib.collectives.
        no-communication: Every rank trains a model of its own. Between backward and
            optimizer.step the gradients have to become the same everywhere: all_reduce each
            p.grad.
        deadlock: all_reduce is called by every rank, for the same parameters in the same
            order. Is a call inside an if that only some ranks enter?
        not-divided: all_reduce gives the sum over ranks; the gradient of the full batch is
            the mean. Divide by group.size, once.
        divided-twice: The gradient was divided by the number of ranks twice: in the loss,
            or by op="mean", and again afterwards. Once is enough.
        divided-by-two: Is there a 2 in your code? The number of ranks is group.size.
        averaged-parameters: You average the parameters after the step. With SGD that
            happens to be equal; Adam has already turned each rank's own gradient into a
            step. Average the gradients before optimizer.step.
        reduced-too-late: You communicate, and the step has already used each rank's own
            gradient. all_reduce comes after backward and before optimizer.step.
        gradients-not-cleared: From step 2 on, old gradients are still in p.grad: call
            optimizer.zero_grad() before backward.
        no-step: The parameters did not change: is optimizer.step() missing?
        too-much-traffic: The values are right, and more was sent than one all-reduce of the
            gradients. Is something reduced twice?
    """),
)


@checker(STEP)
def check_data_parallel_step(fn, seed=None):
    """Points for `fn(model, x, y, optimizer, group)`: one step on this rank's rows, as one process
    on all rows.
    """
