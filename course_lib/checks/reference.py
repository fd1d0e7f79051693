"""What one process does, and what people do instead: parameters after each step, for every rank.

A check compares the learner's parameters with the right ones, and then, to name the misconception,
with those of each wrong rule. No process is started here.
"""

from __future__ import annotations

import copy

import torch

STEPS, LR = 3, {"SGD": 0.2, "Adam": 0.05}
OPTIMIZERS = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam}
RULES = (
    "no-step",
    "local",
    "not-divided",
    "divided-twice",
    "divided-by-two",
    "averaged-parameters",
    "gradients-not-cleared",
)


def simulate(rule: str, name: str, model, rows) -> list[list[torch.Tensor]]:
    """Parameters of every rank after each step if all ranks followed `rule`; "right" is the full
    batch.

    The other rules are what people do instead; each gives numbers of its own.
    """
    world_size = len(rows)
    scale = {"not-divided": 1, "divided-twice": 1 / world_size**2, "divided-by-two": 1 / 2}.get(
        rule, 1 / world_size
    )
    models = [copy.deepcopy(model) for _ in rows]
    steppers = [OPTIMIZERS[name](m.parameters(), lr=LR[name]) for m in models]
    history = []
    for step in range(STEPS):
        for m, mine in zip(models, rows, strict=True):
            if rule != "gradients-not-cleared":
                m.zero_grad()
            x, y = mine[step]
            torch.nn.functional.mse_loss(m(x), y).backward()
        if rule not in ("local", "averaged-parameters"):
            for same in zip(*(m.parameters() for m in models), strict=True):
                total = sum(p.grad for p in same) * scale
                for p in same:
                    p.grad = total.clone()
        for stepper in steppers if rule != "no-step" else []:
            stepper.step()
        if rule == "averaged-parameters":
            with torch.no_grad():
                for same in zip(*(m.parameters() for m in models), strict=True):
                    mean = sum(same) / world_size
                    for p in same:
                        p.copy_(mean)
        history.append([flat(m) for m in models])
    return history


def flat(model) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def train(fn, group, model, batches):
    """In a rank: the parameters, flat, after each step with each optimizer."""
    history = []
    for name, make in OPTIMIZERS.items():
        mine = copy.deepcopy(model)
        optimizer = make(mine.parameters(), lr=LR[name])
        for x, y in batches:
            fn(mine, x, y, optimizer, group)
            history.append(flat(mine))
    return history


def close(a, b) -> bool:
    return (
        isinstance(a, torch.Tensor)
        and a.shape == b.shape
        and torch.allclose(a, b, rtol=1e-5, atol=1e-6)
    )


def followed(rule: str, name: str, model, rows, got) -> bool:
    """Whether the parameters `got[step][rank]` are those of `rule`, at every step and rank."""
    return all(map(close, sum(got, []), sum(simulate(rule, name, model, rows), [])))
