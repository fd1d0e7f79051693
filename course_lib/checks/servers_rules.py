"""Task 4.1: what workers hold after each step if the server is right, or wrong as people are."""

from __future__ import annotations

import copy

import torch
from torch.nn.functional import mse_loss

from ..parameter_server import flat, gradients, write
from .reference import LR, OPTIMIZERS, STEPS

LIBRARY = tuple(f"course_lib.parameter_server.{name}" for name in (
    "serve_parameters", "serve_gradients", "mean_of_workers", "send_to_workers", "serve",
    "arrival_order", "may_start"))
EQUAL, UNEQUAL = (4, 4, 4), (1, 3, 8)  # rows of each worker
CASES = tuple((name, sizes) for sizes in (EQUAL, UNEQUAL) for name in OPTIMIZERS)
RULES = ("no-step", "not-divided", "weights-not-divided", "divided-by-ranks", "only-the-last",
         "weights-ignored", "old-parameters", "gradients-not-cleared", "one-by-one",
         "form-confused")


def followed(rule: str, form: str, case, model, rows) -> list[torch.Tensor]:
    """What each worker holds after each step if the server follows the rule; rows[worker][step]."""
    name, weights = case[0], case[1][:len(rows)]
    server, worker = copy.deepcopy(model), copy.deepcopy(model)
    here = server if form == "updates" else worker
    stepper = OPTIMIZERS[name](here.parameters(), lr=LR[name])
    history, old = [], 0.0
    for step in range(STEPS):
        parts = []
        for mine in rows:
            worker.zero_grad()
            mse_loss(worker(mine[step][0]), mine[step][1]).backward()
            parts.append(flat(gradients(worker)))
        total, before = _combined(rule, parts, weights), flat(here.parameters())
        if rule == "gradients-not-cleared":
            total = old = old + total
        if rule == "form-confused" and here is worker:
            total = flat(server.parameters())
        shares = [n / sum(weights) * part for n, part in zip(weights, parts)]
        for gradient in shares if rule == "one-by-one" else [total]:
            write(gradients(here), gradient)
            if rule != "no-step":
                stepper.step()
        sent = before if rule == "old-parameters" else flat(here.parameters())
        if rule == "form-confused" and here is server:
            sent = total
        write(worker.parameters(), sent)
        history.append(flat(worker.parameters()))
    return history


def _combined(rule: str, parts, weights) -> torch.Tensor:
    weighted = sum(n * part for n, part in zip(weights, parts))
    return {"not-divided": sum(parts), "weights-not-divided": weighted,
            "divided-by-ranks": sum(parts) / (len(parts) + 1), "only-the-last": parts[-1],
            "weights-ignored": sum(parts) / len(parts)}.get(rule, weighted / sum(weights))


