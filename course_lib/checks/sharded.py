"""What the checks of exercises 05 to 07 share: small models, rows per rank, and one process that
does it right, or wrong in the ways in which people do.

A model is trained as one vector, so that a rule can say which rank's gradient an element sees.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import nn

from ..launch.errors import RankFailure
from . import verdicts
from .machinery import Bench, Wrong
from .reference import LR, OPTIMIZERS, STEPS, close, flat

ZERO = tuple(f"course_lib.{name}" for name in (
    "zero.Zero1", "zero.Zero1ByAllReduce", "zero.Zero2", "zero.Zero3", "zero_units.Unit",
    "zero_units.Gathered", "zero_units.own_sum", "zero_units.own_sum_by_all_reduce",
    "zero_units.all_gather_into"))
SAID = {  # what torch says, and the verdict on it where the task has a hint for that
    "out of bounds for storage of size 0": "still-empty",
    "out of bounds for storage of size": "too-little-room",
    "grad can be implicitly created only": "no-gradient-given",
    "does not require grad and does not have a grad_fn": "graph-cut",
}
BYTES = 8  # everything is float64: sums in another order differ by less than the checks allow


class Layer(nn.Module):
    """x [B, D] -> [B, D]. With `spare`, it has parameters that no row uses, without gradient."""

    def __init__(self, dim: int, spare: int = 0):
        super().__init__()
        self.linear = nn.Linear(dim, dim)
        if spare:
            self.spare = nn.Parameter(torch.ones(spare))

    def forward(self, x_BD):
        return torch.tanh(self.linear(x_BD))


class Sometimes(nn.Module):
    """x [B, 3] -> [B, 2]. `extra` is used when x[0, 0] > 0, and gets no gradient otherwise."""

    def __init__(self):
        super().__init__()
        self.first, self.extra, self.last = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x_BD):
        h = torch.tanh(self.first(x_BD))
        return self.last(h + self.extra(h) if x_BD[0, 0] > 0 else h)


def drawn(bench: Bench, model: nn.Module, *key: int) -> nn.Module:
    """The model in float64, with parameters drawn from the bench's seed."""
    draw = bench.generator(*key)
    model = model.double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=draw, dtype=torch.float64) / 2)
    return model


def rows(bench: Bench, world_size: int, width: tuple[int, int], count: int = 2, idle: int = -1):
    """Per rank its (x, y) of each step; x[0, 0] is positive, and negative on rank `idle`."""
    made = []
    for rank in range(world_size):
        draw = bench.generator(world_size, rank, *width)
        mine = []
        for _ in range(STEPS):
            x = torch.randn(count, width[0], generator=draw).double()
            x[0, 0] = -abs(x[0, 0]) if rank == idle else abs(x[0, 0])
            mine.append((x, torch.randn(count, width[1], generator=draw).double() + rank))
        made.append(mine)
    return made


def gradient(model: nn.Module) -> torch.Tensor:
    """All gradients end to end; a missing one counts as zero."""
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten()
                      for p in model.parameters()])


def owners(sizes: list[int], world_size: int) -> torch.Tensor:
    """Which rank's shard each element is in, for units of these sizes laid end to end."""
    return torch.cat([torch.arange(n) // -(-n // world_size) for n in sizes])


def mse_gradient(model: nn.Module, batch, rule: str) -> torch.Tensor:
    """The gradient [n] of the mean squared error on batch = (x, y), added to what p.grad holds."""
    F.mse_loss(model(batch[0]), batch[1]).backward()
    return gradient(model)


def blend(rule: str, seen: torch.Tensor, rank: int, owner) -> torch.Tensor:
    """The gradient [n] that `rank` uses, from those of all ranks [W, n]."""
    mean = seen.mean(0)
    match rule:
        case "no-communication" | "averaged-parameters":
            return seen[rank].clone()
        case "not-divided":
            return seen.sum(0)
        case "divided-twice":
            return mean / len(seen)
        case "own-gradient":
            return seen[owner, torch.arange(len(owner))]
        case "not-gathered":
            return mean * (owner == rank)
    return mean


def simulate(rule: str, name: str, model, rows, owner=None, gradient_of=mse_gradient, blend=blend,
             shares=None) -> list[list[torch.Tensor]]:
    """Parameters of every rank after each step if all followed `rule`; "right" is one process.

    gradient_of(model, batch, rule) is a rank's gradient; blend(rule, seen, rank, owner) what a rank
    uses of all of them; shares are the ranks' weights when parameters are averaged.
    """
    models = [copy.deepcopy(model) for _ in rows]
    vectors = [nn.Parameter(flat(m).clone()) for m in models]
    steppers = [OPTIMIZERS[name]([v], lr=LR[name]) for v in vectors]
    history = []
    for step in range(len(rows[0])):
        seen = []
        for m, mine in zip(models, rows, strict=True):
            if rule != "gradients-not-cleared":
                m.zero_grad()
            seen.append(gradient_of(m, mine[step], rule))
        for rank, vector in enumerate(vectors):
            used = blend(rule, torch.stack(seen), rank, owner)
            if rule == "reduced-again":  # what all ranks hold from the step before is summed too
                used += len(rows) * (0 if vector.grad is None else vector.grad)
            vector.grad = used
            if rule == "new-optimizer":
                steppers[rank] = OPTIMIZERS[name]([vector], lr=LR[name])
            if rule != "no-step":
                steppers[rank].step()
        if rule == "averaged-parameters":
            weights = shares or [1 / len(rows)] * len(rows)
            mean = sum(w * v.data for w, v in zip(weights, vectors))
            for vector in vectors:
                vector.data.copy_(mean)
        for m, vector in zip(models, vectors, strict=True):
            if rule == "gathered-late":  # the gradients of all steps are those of the first model
                continue
            nn.utils.vector_to_parameters(vector.detach().clone(), m.parameters())
        history.append([v.detach().clone() for v in vectors])
    return history


def judge(where: str, got, name: str, model, rows, rules, **how) -> None:
    """Raise Wrong unless got[step][rank] are one process's parameters; name the rule followed.

    how: owner, gradient_of, blend, shares of `simulate`.
    """
    want = simulate("right", name, model, rows, **how)
    for step, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        for rank, (mine, right) in enumerate(zip(ours, theirs, strict=True)):
            if close(mine, right):
                continue
            followed = (r for r in rules if all(map(close, sum(got, []), sum(
                simulate(r, name, model, rows, **how), []))))
            text = f"{where}, after step {step + 1}, rank {rank}"
            if not isinstance(mine, torch.Tensor) or mine.shape != right.shape:
                raise Wrong("wrong-shape", f"{text}: the parameters have changed their shape")
            worst = int((mine - right).abs().argmax())
            raise Wrong(next(followed, "wrong-value"),
                        f"{text}: expected parameter {worst} to be {right[worst]:.6f}, as in one "
                        f"process on all rows, got {mine[worst]:.6f}")


def run(bench: Bench, world_size: int, driver, args, record="calls"):
    """As bench.run; an error about None is a gradient that is missing, a call with None as well.

    An error in SAID gets the verdict that stands there.
    """
    try:
        return bench.run(world_size, driver, args, record)
    except RankFailure as failure:
        verdict, message = verdicts.of(failure)
        if "NoneType" in message or "all_reduce op=" in message:  # no dtype: it was given None
            raise Wrong("missing-gradient", message) from None
        named = next((code for words, code in SAID.items() if words in message), "")
        if named in bench.task.hints:
            raise Wrong(named, message) from None
        raise
