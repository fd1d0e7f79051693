"""Exercise 04, task 4.2: a server that lets nobody run more than k steps ahead."""

from __future__ import annotations

import copy

import torch

from ..parameter_server import Clock, flat
from ..trace import ASYNCHRONOUS
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import close
from .servers_rules import LIBRARY
from .servers_turns import LR, SPEEDS, STEPS, course, followed, gradient, sorted_sends, turns_of
from .verdicts import hints_of


def bounded(fn, group, model, rows, k, seed):
    """In a rank: the server's parameters at the end; a worker's, each time that it gets some."""
    model, clock = copy.deepcopy(model), Clock(SPEEDS[group.size], 0.3, seed)
    if group.rank == 0:
        fn(model, torch.optim.SGD(model.parameters(), lr=LR), group, clock, STEPS, k)
        return [flat(model.parameters())]
    group.mark(ASYNCHRONOUS)
    got, vector = [], flat(model.parameters())
    for x, y in rows:
        got.append(group.recv(vector, 0).clone())
        group.compute("step", seconds=clock.start(group.rank))
        group.send(gradient(model, vector, x, y), 0)
    return got


def in_step(fn, group, model, rows, k, seed):
    """The same with k = 0: one run more, of another name."""
    return bounded(fn, group, model, rows, k, seed)


def _inputs(bench: Bench, world_size: int, k: int):
    draw = bench.generator(world_size, k)
    model = torch.nn.Linear(3, 2).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=draw, dtype=torch.float64))
    rows = [[(torch.randn(4, 3, generator=draw).double(), torch.randn(4, 2, generator=draw).double()
              + rank) for _ in range(STEPS)] for rank in range(world_size)]
    return [(model, mine, k, bench.seed % 1000) for mine in rows]


def _run(bench: Bench, world_size: int, k: int):
    """The arguments of each rank, the outcome, and the server's turns."""
    args = _inputs(bench, world_size, k)
    outcome = bench.run(world_size, bounded if k else in_step, args)
    return args, outcome, turns_of(outcome.trace)


def _ahead(bench: Bench, world_size: int, k: int) -> None:
    """Nobody gets parameters who is more than k steps ahead."""
    args, _, turns = _run(bench, world_size, k)
    done = dict.fromkeys(range(1, world_size), 0)
    for kind, worker in turns:
        lead = done[worker] - min(done.values())
        done[worker] += kind == "recv"
        if kind == "send" and lead > k:
            verdict = _like(turns, args, {"never-waits": STEPS, "one-too-many": k + 1},
                            "too-far-ahead")
            raise Wrong(verdict, f"{world_size - 1} workers, k = {k}: worker {worker} got "
                        f"parameters when it had done {lead} steps more than the slowest")


def _in_vain(bench: Bench, world_size: int, k: int) -> None:
    """Nobody waits who may start, and gradients are received as they arrive."""
    args, _, turns = _run(bench, world_size, k)
    ours, right = sorted_sends(turns), sorted_sends(course(world_size, k, args[0][-1]))
    if ours == right:
        return
    at = next(i for i, pair in enumerate(zip(ours, right)) if pair[0] != pair[1])
    lower = {"in-step": 0, "one-too-few": k - 1} if k else {}
    verdict = _like(turns, args, lower, "waits-in-vain" if len(ours[at][0]) < len(right[at][0])
                    else "another-order")
    raise Wrong(verdict, f"{world_size - 1} workers, k = {k}, before arrival {at + 1}: expected "
                f"parameters to go to workers {right[at][0]} and then a gradient of worker "
                f"{right[at][1]}, got {ours[at][0]} and {ours[at][1]}")


def _like(turns, args, bounds: dict, otherwise: str) -> str:
    """The verdict whose bound gives these turns."""
    same = sorted_sends(turns)
    return next((verdict for verdict, bound in bounds.items()
                 if same == sorted_sends(course(len(args), bound, args[0][-1]))), otherwise)


def _both(world_size: int, k: int):
    def test(bench: Bench) -> None:
        _ahead(bench, world_size, k)
        _in_vain(bench, world_size, k)
    return test


RULES = ("not-applied", "old-parameters", "added-up", "divided")


def _values(bench: Bench) -> None:
    for world_size, k in ((2, 1), (4, 2), (5, 1)):
        args, outcome, turns = _run(bench, world_size, k)
        got, want = outcome.values, followed("right", args, turns)
        for rank in [*range(1, world_size), 0]:
            for number, (mine, right) in enumerate(zip(got[rank], want[rank], strict=True)):
                if close(mine, right):
                    continue
                verdict = next((rule for rule in RULES if all(map(close, sum(got, []), sum(
                    followed(rule, args, turns), [])))), "wrong-value")
                raise Wrong(verdict, f"{world_size - 1} workers, k = {k}: rank {rank}, its vector "
                            f"{number + 1}: expected {right[0]:.6f} first, got {mine[0]:.6f}")


BOUNDED = Task(
    "4.2",
    "bounded_server",
    "04_parameter_server",
    (
        Subcheck("one worker makes all its steps", _both(2, 1)),
        Subcheck("three workers, k = 2: nobody starts too far ahead",
                 lambda bench: _ahead(bench, 4, 2), gate=True),
        Subcheck("three workers, k = 2: nobody waits in vain",
                 lambda bench: _in_vain(bench, 4, 2), points=2),
        Subcheck("four workers, k = 1; three, k = 0",
                 lambda bench: _both(5, 1)(bench) or _both(4, 0)(bench)),
        Subcheck("each worker gets the parameters of that moment", _values),
    ),
    forbid=TORCH_COLLECTIVES + LIBRARY,
    hints=hints_of("""
        deadlock: A worker waits for ever. After each arrival go through all that wait: the slowest
            may have moved. And each makes `steps` steps before you return.
        error: clock.arrival() needs somebody who computes: call clock.start(worker) when you have
            sent parameters. Nobody computes when everybody waits: the slowest never has to.
        never-waits: This is the asynchronous server without a bound. Before you send parameters,
            compare done[worker] with the smallest of done.
        one-too-many: A worker gets parameters when it is k + 1 steps ahead. It may start while its
            lead over the slowest is at most k.
        one-too-few: With <= k you have < k. A worker that is exactly k ahead may start.
        too-far-ahead: The lead is counted against the slowest worker: done[worker] minus
            min(done.values()).
        in-step: Everybody waits for everybody, as if k were 0. Only those wait who are more than k
            ahead of the slowest.
        waits-in-vain: A worker waits though it may start. After each arrival go through all that
            wait, and send to each that may.
        another-order: Receive from the worker that clock.arrival() names, and call
            clock.start(worker) for each worker at the moment at which you send to it.
        not-applied: The gradients arrive and the parameters stay as they are.
        old-parameters: The workers get the first parameters again and again. Flatten the model's
            parameters when you send.
        added-up: Gradients of before are still in p.grad. Overwrite it, or call
            optimizer.zero_grad().
        divided: Here each gradient is applied whole, as it arrives; it is no mean.
        wrong-value: Each gradient is applied, whole and at once, before anybody else gets
            parameters.
    """),
)


@checker(BOUNDED)
def check_bounded_server(fn, seed=None):
    """Points for `fn(model, optimizer, group, clock, steps, k)`: a server with bounded staleness.
    """
