"""Task 4.2: the turns of a right server, those that a run has taken, and what follows from them."""

from __future__ import annotations

import copy

import torch

from ..parameter_server import Clock, flat, gradients, write
from ..trace import RECVS, SENDS

STEPS, LR = 6, 0.05
SPEEDS = {2: (1.0,), 4: (1.0, 1.3, 3.1), 5: (2.0, 0.7, 1.1, 2.9)}  # by world size


def gradient(model, parameters, x, y) -> torch.Tensor:
    write(model.parameters(), parameters)
    model.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    return flat(gradients(model))


def course(world_size: int, k: float, seed: int) -> list[tuple[str, int]]:
    """What a right server does, in order: ("send" | "recv", worker)."""
    clock, done = Clock(SPEEDS[world_size], 0.3, seed), dict.fromkeys(range(1, world_size), 0)
    waiting, turns = list(done), []
    while waiting or clock.running:
        for worker in [w for w in waiting if done[w] - min(done.values()) <= k]:
            turns.append(("send", worker))
            waiting.remove(worker)
            clock.start(worker)
        worker = clock.arrival()
        turns.append(("recv", worker))
        done[worker] += 1
        waiting = sorted(waiting + [worker] * (done[worker] < STEPS))
    return turns


def turns_of(trace) -> list[tuple[str, int]]:
    """What the server did, a message counting when it has been received."""
    turns, posted = [], {}
    for e in trace.program(0):
        if e.kind in SENDS:
            turns.append(("send", e.peer))
        elif e.kind == "recv":
            turns.append(("recv", e.peer))
        elif e.kind in RECVS:
            posted[e.requests[0]] = e.peer
        elif e.kind == "wait":
            turns += [("recv", posted.pop(r)) for r in e.requests if r in posted]
    return turns


def sorted_sends(turns):
    """The turns with the sends between two arrivals in order of workers: no matter which is first.
    """
    rows = [[]]
    for kind, worker in turns:
        rows[-1].append(worker)
        if kind == "recv":
            rows.append([])
    return [(sorted(row[:-1]), row[-1:]) for row in rows]


def followed(rule: str, args, turns) -> list[list[torch.Tensor]]:
    """Per rank what `bounded` returns, if the server took these turns and followed the rule."""
    model, workers = copy.deepcopy(args[0][0]), len(args) - 1
    now = first = flat(model.parameters())
    got, total = [[] for _ in args], 0.0
    for kind, worker in turns:
        if kind == "send":
            got[worker].append(first if rule == "old-parameters" else now)
            continue
        x, y = args[worker][1][len(got[worker]) - 1]
        whole = gradient(model, got[worker][-1], x, y)
        total = total + whole
        step = {"not-applied": 0.0, "added-up": total, "divided": whole / workers}
        now = now - LR * step.get(rule, whole)
    got[0].append(now)
    return got


