"""Parameter server: rank 0, the server, holds the parameters; all others are its N workers.

Synchronous, one step, in two forms:

==========  ==============================================  ====================================
form        server (rank 0)                                 worker, after loss.backward()
==========  ==============================================  ====================================
parameters  serve_parameters: mean, optimizer step, send    pull_parameters
gradients   serve_gradients: mean, send                     pull_gradients, then optimizer.step()
==========  ==============================================  ====================================

Both give the parameters of data parallelism. In the first only the server has optimizer state, in
the second every worker has it and the server nothing else than the sum. Traffic of a step, through
the one port of the server: N vectors in, N vectors out, 2N n bytes for a vector of n.

Asynchronous: `serve` applies each gradient as it arrives, `work` computes the next one from the
parameters that it then gets. The *staleness* of a gradient is the number of updates that the server
made since it sent the parameters from which the gradient comes. With a bound k, a worker that is
more than k steps ahead of the slowest waits (stale synchronous parallel: Ho et al. 2013, "More
Effective Distributed ML via a Stale Synchronous Parallel Parameter Server"); staleness is then at
most (2k + 1)(N - 1). Who arrives when follows from the workers' speeds, `Clock`, and real ranks
obey it: so runs repeat. Their trace belongs to these speeds, and `replay` offers no other machine.

Parameters and gradients travel as one flat vector, in the order of `model.parameters()`; a missing
gradient counts as zero; frozen ones (requires_grad=False) neither travel nor change. Source: Li et
al. 2014, "Scaling Distributed Machine Learning with the Parameter Server".
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .data_parallel import trainable
from .group import Group
from .timeline import Timeline
from .trace import ASYNCHRONOUS

SERVER = 0


def serve_parameters(model: nn.Module, optimizer: torch.optim.Optimizer, group: Group,
                     weights: Sequence[float] | None = None) -> None:
    """Server, form 1. After: updated by the workers' mean gradient; every worker has the result.

    weights: what each worker's gradient counts, such as its number of examples; None: all alike.
    """
    write(gradients(model), mean_of_workers(model, group, weights))
    optimizer.step()
    optimizer.zero_grad()
    send_to_workers(flat(parameters(model)), group)


def pull_parameters(model: nn.Module, group: Group) -> None:
    """Worker, form 1. After: its gradient is with the server, the parameters are the updated ones.
    """
    vector = flat(gradients(model))
    group.send(vector, SERVER)
    write(parameters(model), group.recv(vector, SERVER))
    model.zero_grad()


def serve_gradients(model: nn.Module, group: Group, weights: Sequence[float] | None = None) -> None:
    """Server, form 2. After: every worker has the mean gradient; the model gave only its size."""
    send_to_workers(mean_of_workers(model, group, weights), group)


def pull_gradients(model: nn.Module, group: Group) -> None:
    """Worker, form 2. After: the gradient is the mean over workers. Then `optimizer.step()`."""
    vector = flat(gradients(model))
    group.send(vector, SERVER)
    write(gradients(model), group.recv(vector, SERVER))


def mean_of_workers(model: nn.Module, group: Group, weights: Sequence[float] | None = None
                    ) -> Tensor:
    """Server: receive one gradient of each worker; return their mean, weighted by `weights`."""
    workers = range(1, check_workers(group) + 1)
    weights = [1.0] * len(workers) if weights is None else list(weights)
    if len(weights) != len(workers) or min(weights) < 0 or not sum(weights) > 0:
        raise ValueError(f"weights={weights}: must be a number of at least 0 for each of the "
                         f"{len(workers)} workers, and not all 0")
    incoming = flat(parameters(model))
    total = torch.zeros_like(incoming)
    for worker, weight in zip(workers, weights):
        total += group.recv(incoming, worker) * (weight / sum(weights))
    return total


def send_to_workers(vector: Tensor, group: Group) -> None:
    """Server: every worker gets the vector, one after the other."""
    for worker in range(1, group.size):
        group.send(vector, worker)


class Clock:
    """Which worker's gradient arrives next, if a step of worker w takes seconds[w - 1].

    Each step takes longer by a random part of `jitter` (0.5: by up to a half), drawn from `seed`.
    Messages take no time. ValueError for seconds that are not above 0 or a jitter below 0.
    """

    def __init__(self, seconds: Sequence[float], jitter: float = 0.0, seed: int = 0):
        if not seconds or not min(seconds) > 0:
            raise ValueError(f"seconds={seconds}: must be above 0, one for each worker")
        if not jitter >= 0:
            raise ValueError(f"jitter={jitter}: must be at least 0")
        self.seconds, self.jitter, self.now = list(seconds), jitter, 0.0
        self.draws = [random.Random(f"{seed} {i}") for i in range(len(seconds))]
        self.running: list[tuple[float, int]] = []  # heap of (time of arrival, worker)

    def start(self, worker: int) -> float:
        """The worker has got parameters and starts to compute. Returns the seconds that it takes.
        """
        draw = self.draws[worker - 1].random()
        seconds = self.seconds[worker - 1] * (1 + self.jitter * draw)
        heappush(self.running, (self.now + seconds, worker))
        return seconds

    def arrival(self) -> int:
        """The worker whose gradient arrives next; `now` becomes that time. ValueError if none is.
        """
        if not self.running:
            raise ValueError("arrival: no worker computes, so no gradient will come")
        self.now, worker = heappop(self.running)
        return worker


class Turn(NamedTuple):
    """What the server does at `time`: send ("pull") or receive ("push") with one worker.

    seconds: what the worker's step takes, of a pull. staleness: updates since its pull, of a push.
    """

    kind: str
    worker: int
    time: float
    seconds: float = 0.0
    staleness: int = 0


def may_start(worker: int, done: dict[int, int], bound: int | None) -> bool:
    """Whether a worker may begin a step: it is at most `bound` steps ahead of the slowest."""
    return bound is None or done[worker] - min(done.values()) <= bound


def arrival_order(clock: Clock, updates: int, bound: int | None = None) -> list[Turn]:
    """The server's turns until it has made `updates` updates; no worker starts in vain.

    ValueError unless updates is at least 1 and bound (None: no bound) at least 0.
    """
    if updates < 1 or (bound is not None and bound < 0):
        raise ValueError(f"updates={updates}, bound={bound}: must be at least 1, and 0 or None")
    done = {worker: 0 for worker in range(1, len(clock.seconds) + 1)}
    turns, waiting, version, pulled = [], list(done), 0, {}
    while version < updates:
        for worker in [w for w in waiting if may_start(w, done, bound)]:
            if version + len(clock.running) < updates:
                turns.append(Turn("pull", worker, clock.now, clock.start(worker)))
                waiting.remove(worker)
                pulled[worker] = version
        worker = clock.arrival()
        turns.append(Turn("push", worker, clock.now, staleness=version - pulled[worker]))
        version, done[worker] = version + 1, done[worker] + 1
        waiting = sorted([*waiting, worker])
    return turns


def serve(model: nn.Module, optimizer: torch.optim.Optimizer, group: Group, order: list[Turn]
          ) -> Iterator[Turn]:
    """Server, asynchronous: apply each gradient as it arrives; a generator of the pushes applied.

    Go through it to its end. Cost: 2 vectors per update, one in and one out.
    """
    workers, vector = check_workers(group), flat(parameters(model))
    if (most := max(turn.worker for turn in order)) > workers:
        raise ValueError(f"order: has {most} workers, the group {workers}")
    for turn in order:
        if turn.kind == "pull":
            group.send(flat(parameters(model)), turn.worker)
            continue
        write(gradients(model), group.recv(vector, turn.worker))
        optimizer.step()
        yield turn


def work(model: nn.Module, loss_of: Callable[[nn.Module, int], Tensor], group: Group,
         seconds: Sequence[float]) -> None:
    """Worker, asynchronous: a step for each of `seconds`, which the recorder takes as its time.

    loss_of(model, step) is the loss of this worker's step 0, 1, ... Give it `own_seconds(order)`.
    """
    group.mark(ASYNCHRONOUS)
    vector = flat(parameters(model))
    for step, time in enumerate(seconds):
        write(parameters(model), group.recv(vector, SERVER))
        model.zero_grad()
        loss_of(model, step).backward()
        group.compute("step", seconds=time)
        group.send(flat(gradients(model)), SERVER)


def own_seconds(order: list[Turn], group: Group) -> list[float]:
    """How long each step of this worker takes."""
    return [t.seconds for t in order if t.kind == "pull" and t.worker == group.rank]


def idle_shares(timeline: Timeline) -> list[float]:
    """Share of the makespan in which each worker computes nothing."""
    return [timeline.idle(rank) / timeline.makespan for rank in range(1, timeline.world_size)]


def check_workers(group: Group) -> int:
    """The number of workers. ValueError when there is none."""
    if group.size < 2:
        raise ValueError(f"world_size={group.size}: must be at least 2, a server and a worker")
    return group.size - 1


def flat(tensors: Iterable[Tensor]) -> Tensor:
    """A new vector: all elements, end to end."""
    return torch.cat([tensor.detach().flatten() for tensor in tensors])


def write(tensors: Iterable[Tensor], vector: Tensor) -> None:
    """The other way: copy the vector's elements into the tensors."""
    tensors = list(tensors)
    for tensor, part in zip(tensors, vector.split([t.numel() for t in tensors])):
        tensor.data.copy_(part.view_as(tensor))


def parameters(model: nn.Module) -> list[nn.Parameter]:
    """Those that are trained: not the frozen ones."""
    return list(trainable(model).values())


def gradients(model: nn.Module) -> list[Tensor]:
    """The gradient of each parameter that is trained; one that has none gets zeros."""
    for parameter in parameters(model):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [parameter.grad for parameter in parameters(model)]
