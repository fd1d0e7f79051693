"""Exercise 04, task 4.1: the server's half of a synchronous step, in both forms."""

from __future__ import annotations

import copy

import torch
from torch.nn.functional import mse_loss

from ..parameter_server import flat, pull_gradients, pull_parameters
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import LR, OPTIMIZERS, STEPS, close
from .servers_rules import CASES, EQUAL, LIBRARY, RULES, UNEQUAL, followed
from .verdicts import hints_of


def updates(fn, group, model, rows):
    """In a rank: the parameters after each step of each case, the server being `fn`'s, form 1."""
    return [state for case, mine in zip(CASES, rows) for state in _steps(fn, group, model, case,
                                                                         mine, True)]


def averages(fn, group, model, rows):
    """The same in form 2, in which every worker has an optimizer and the server has none."""
    return [state for case, mine in zip(CASES, rows) for state in _steps(fn, group, model, case,
                                                                         mine, False)]


def _steps(fn, group, model, case, mine, server_updates: bool):
    model, (name, sizes) = copy.deepcopy(model), case
    stepper = OPTIMIZERS[name](model.parameters(), lr=LR[name])
    for step in range(STEPS):
        if group.rank == 0:
            fn(model, stepper if server_updates else None, group, list(sizes[:group.size - 1]))
        else:
            x, y = mine[step]
            mse_loss(model(x), y).backward()
            (pull_parameters if server_updates else pull_gradients)(model, group)
            if not server_updates:
                stepper.step()
                stepper.zero_grad()
        yield flat(model.parameters())


def _setup(bench: Bench, workers: int):
    """The model, and per worker, per case, its (x, y) of each step."""
    draw = bench.generator(workers)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    with torch.no_grad():
        for p in model.double().parameters():
            p.copy_(torch.randn(p.shape, generator=draw, dtype=torch.float64))

    def some(rows, columns, shift=0):
        return torch.randn(rows, columns, generator=draw).double() + shift

    return model, [[[(some(sizes[w], 3), some(sizes[w], 2, 2 * w)) for _ in range(STEPS)]
                    for _, sizes in CASES] for w in range(workers)]


def _right(driver, sizes, *worker_counts: int, names=tuple(OPTIMIZERS)):
    def test(bench: Bench) -> None:
        for workers in worker_counts:
            model, rows = _setup(bench, workers)
            args = [(model, rows[0])] + [(model, mine) for mine in rows]
            outcome = bench.run(workers + 1, driver, args)
            for number, case in enumerate(CASES):
                if case[1] == sizes and case[0] in names:
                    part = slice(number * STEPS, (number + 1) * STEPS)
                    got = [values[part] for values in outcome.values]
                    _compare(driver.__name__, case, got, model, [r[number] for r in rows])
    return test


def _compare(form: str, case, got, model, rows) -> None:
    want = followed("right", form, case, model, rows)
    for step in range(STEPS):
        for rank in [*range(1, len(got)), *[0] * (form == "updates")]:
            mine, right = got[rank][step], want[step]
            if close(mine, right):
                continue
            verdict = next((rule for rule in RULES if all(map(close, got[1], followed(
                rule, form, case, model, rows)))), "wrong-value")
            if rank == 0:
                verdict = "server-not-updated"
            worst = int((mine - right).abs().argmax())
            raise Wrong(verdict, (
                f"{case[0]}, {len(rows)} workers with {case[1][:len(rows)]} rows, the server "
                f"{form}: after step {step + 1}, rank {rank}: expected parameter {worst} to be "
                f"{right[worst]:.6f}, as in one process on all rows, got {mine[worst]:.6f}"))


def _traffic(bench: Bench) -> None:
    """2 N n bytes through the port, and no answer before the last gradient is there."""
    model, rows = _setup(bench, 3)
    trace = bench.run(4, updates, [(model, rows[0])] + [(model, mine) for mine in rows]).trace
    sent = [trace.bytes_sent(rank) for rank in range(4)]
    n = STEPS * len(CASES) * flat(model.parameters()).nbytes
    if sent != [3 * n, n, n, n]:
        raise Wrong("too-much-traffic", f"3 workers: expected each worker to send {n} B and the "
                    f"server {3 * n} B, which is N n in and N n out; sent {sent}")


SERVER_STEP = Task(
    "4.1",
    "server_step",
    "04_parameter_server",
    (
        Subcheck("one worker, SGD and Adam", _right(updates, EQUAL, 1)),
        Subcheck("three workers, the server updates, SGD", _right(updates, EQUAL, 3,
                                                                  names=("SGD",)), gate=True),
        Subcheck("the same with Adam", _right(updates, EQUAL, 3, names=("Adam",))),
        Subcheck("the server only averages, SGD and Adam", _right(averages, EQUAL, 1, 3)),
        Subcheck("workers with unequal parts, both forms", lambda bench: [
            _right(driver, UNEQUAL, 3)(bench) for driver in (updates, averages)] and None),
        Subcheck("N n bytes in, N n bytes out", _traffic),
    ),
    forbid=TORCH_COLLECTIVES + LIBRARY,
    hints=hints_of("""
        deadlock: Each worker sends its gradient once and then waits for one vector. The server
            receives from ranks 1 to N, and then sends to each of them.
        error: In the second form optimizer is None: there is nothing to step. The vector that you
            receive into has as many elements as the model, and its dtype.
        no-step: The workers get the parameters as they were: is optimizer.step() missing, or the
            gradient not in p.grad when it is called?
        not-divided: The gradients are added up; one process on all rows has their mean.
        weights-not-divided: Each gradient counts as often as it has rows, and then the sum has to
            be divided by the number of all rows, sum(weights).
        divided-by-ranks: The server is no worker: it brings no gradient. Divide by what the
            workers bring, not by group.size.
        only-the-last: Each gradient overwrites the one before. Add them up.
        weights-ignored: A mean of means: a worker with one row counts as much as one with eight.
            Use weights.
        old-parameters: The workers get the parameters of before the step. Flatten them after
            optimizer.step().
        gradients-not-cleared: From step 2 on old gradients are in p.grad: overwrite it, or call
            optimizer.zero_grad().
        one-by-one: The server steps for each gradient. With Adam this is another algorithm: average
            first, then take one step.
        form-confused: With an optimizer the workers wait for parameters, without one for the mean
            gradient. You send the other one.
        server-not-updated: The workers are right, and the server's own model is not. It is the one
            that has to step.
        too-much-traffic: The values are right, and more travels than a vector from each worker
            and one back.
    """),
)


@checker(SERVER_STEP)
def check_server_step(fn, seed=None):
    """Points for `fn(model, optimizer, group, weights)`: the server's half of a step, both forms.
    """
