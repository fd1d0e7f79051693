"""Exercise 06, task 6.3: gradients reduced and freed unit by unit during the backward pass."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from . import sharded
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import close
from .sharded import BYTES, ZERO, Layer, drawn, rows
from .verdicts import hints_of

UNITS, DIM, ROWS = 8, 16, 1


def reduce_once(fn, group, units, parts):
    return _reduce(fn, group, units, parts)


def reduce_watched(fn, group, units, parts):
    """The same with the memory recorded: gradients named, marks before and after."""
    return _reduce(fn, group, units, parts, watched=True)


def reduce_twice(fn, group, units, parts):
    return _reduce(fn, group, units, parts)


def reduce_edges(fn, group, units, parts):
    return _reduce(fn, group, units, parts)


def _reduce(fn, group, units, parts, watched=False):
    """In a rank: shard.grad of each unit after each backward pass, one per part; which units still
    have gradients.
    """
    shards = [nn.Parameter(torch.zeros(_length(u, group.size), dtype=torch.float64))
              for u in units]
    trainable = [p for u in units for p in u.parameters() if p.requires_grad]
    came, seen = [], []

    def arrived(p):
        group.hold(p.grad, "gradient")
        came.append(p)
        if len(came) == len(trainable):
            group.mark("last gradient")

    if watched:
        for p in trainable:
            p.register_post_accumulate_grad_hook(arrived)
    model = nn.Sequential(*units)
    group.mark("before")
    fn(units, shards, group)
    for x, y in parts:
        F.mse_loss(model(x), y).backward()
        group.mark("after")
        if not watched:
            seen.append([s.grad if s.grad is None else s.grad.clone() for s in shards])
    left = [any(p.grad is not None for p in u.parameters()) for u in units]
    return [seen, left]


def _length(unit: nn.Module, W: int) -> int:
    return -(-sum(p.numel() for p in unit.parameters()) // W)


def _run(bench: Bench, W: int, driver=reduce_once, record="calls"):
    edges = driver is reduce_edges
    dim, count = (5, 3) if edges else (DIM, UNITS)
    units = [drawn(bench, Layer(dim), 63, i) for i in range(count)]
    if edges:
        units[1].linear.bias.requires_grad_(False)
    passes = 2 if driver in (reduce_twice, reduce_edges) else 1
    parts = [mine[:passes] for mine in rows(bench, W, (dim, dim), ROWS)]
    outcome = sharded.run(bench, W, driver, [(units, mine) for mine in parts], record)
    return units, parts, outcome


def _wanted(units, parts):
    """Per part and unit, the padded gradients of all ranks [W, W * length]."""
    W, model, made = len(parts), nn.Sequential(*units), []
    for step in range(len(parts[0])):
        rows_of = []
        for mine in parts:
            model.zero_grad()
            F.mse_loss(model(mine[step][0]), mine[step][1]).backward()
            rows_of.append([sharded.gradient(u) for u in units])
        made.append([torch.stack([F.pad(mine[i], (0, W * _length(u, W) - len(mine[i])))
                                  for mine in rows_of]) for i, u in enumerate(units)])
    return made


def _reduced(driver, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            units, parts, outcome = _run(bench, W, driver)
            wanted = _wanted(units, parts)
            for rank, (seen, _) in enumerate(outcome.values):
                for k, shards in enumerate(seen):
                    after = f", backward pass {k + 1}" if len(seen) > 1 else ""
                    where = f"W = {W}, rank {rank}{after}"
                    _every_unit(where, units, shards)
                    for i, got in enumerate(shards):
                        _judge(f"{where}, unit {i}", rank, got, [w[i] for w in wanted[:k + 1]])

    return test


def _every_unit(where: str, units, shards) -> None:
    """Raise Wrong when some units were reduced and others never."""
    idle = [i for i, grad in enumerate(shards)
            if not isinstance(grad, torch.Tensor) or not grad.any()]
    if not 0 < len(idle) < len(shards):
        return
    frozen = [i for i, u in enumerate(units) if not all(p.requires_grad for p in u.parameters())]
    verdict = "unit-missing"
    if idle == list(range(len(shards) - 1)):
        verdict = "last-unit-only"
    elif idle == frozen:
        verdict = "frozen-awaited"
    raise Wrong(verdict, f"{where}: shard.grad is None or zero for units {idle} after the backward "
                "pass, and not for the others")


def _judge(where: str, rank: int, got, seen: list[torch.Tensor]) -> None:
    """`seen[k]` are all ranks' gradients [W, W * length] of the unit in backward pass k."""
    W, length = len(seen[0]), seen[0].shape[1] // len(seen[0])

    def part(vector):
        return vector[rank * length:(rank + 1) * length]

    want = part(sum(s.mean(0) for s in seen))
    if close(got, want):
        return
    if not isinstance(got, torch.Tensor):
        raise Wrong("nothing-reduced", f"{where}: shard.grad is None after the backward pass")
    if got.shape != want.shape:
        raise Wrong("wrong-shape", f"{where}: expected shard.grad of {length} elements, got "
                    f"{tuple(got.shape)}")
    ideas = {
        "overwritten": part(seen[-1].mean(0)),
        "not-refilled": part(seen[0].mean(0)),
        "own-gradient": part(sum(s[rank] for s in seen)),
        "not-divided": part(sum(s.sum(0) for s in seen)),
        "divided-twice": want / W,
        "added-twice": want * 2,
        "nothing-reduced": torch.zeros_like(want),
    }
    others = [sum(s.mean(0) for s in seen)[r * length:(r + 1) * length] for r in range(W)]
    verdict = next((v for v, idea in ideas.items() if close(got, idea)), "wrong-value")
    if any(close(got, other) for other in others):
        verdict = "wrong-part"
    worst = int((got - want).abs().argmax())
    raise Wrong(verdict, f"{where}: expected shard.grad[{worst}] to be {want[worst]:.6f}, got "
                f"{got[worst]:.6f}")


def _peak(bench: Bench) -> None:
    W = 4
    units, _, outcome = _run(bench, W, reduce_watched, record=True)
    trace, unit = outcome.trace, sum(p.numel() for p in units[0].parameters()) * BYTES
    shards = UNITS * _length(units[0], W) * BYTES
    for rank, (_, left) in enumerate(outcome.values):
        where = f"W = {W}, {UNITS} units of {unit} B of gradients, rank {rank}"
        _sent_in_time(where, trace, rank)
        if any(left):
            raise Wrong("not-freed", f"{where}: after the backward pass {sum(left)} units still "
                        "have their full gradients in p.grad")
        before, after = (trace.held_at(rank, mark) for mark in ("before", "after"))
        kept = sum(after.values()) - sum(before.values()) - shards
        if kept > unit:
            raise Wrong("hidden-copy", f"{where}: expected {shards} B more after the backward "
                        f"pass than before it, the shards' gradients, got {kept + shards} B")
        most = 3 * unit + shards + UNITS * 6 * ROWS * DIM * BYTES
        peak = max(sum(held.values()) for _, held in trace.held_bytes(rank)) - sum(before.values())
        if peak > most:
            raise Wrong("high-peak", f"{where}: expected at most {most} B more than before the "
                        f"step at any time, got {peak} B")


def _sent_in_time(where: str, trace, rank: int) -> None:
    events = trace.program(rank)
    sends = [i for i, e in enumerate(trace.events(rank)) if e.kind in ("send", "isend")]
    last = next((i for i, e in enumerate(trace.events(rank)) if e.event == "last gradient"),
                len(events))
    early = sum(i < last for i in sends)
    if early < len(sends) / 2:
        raise Wrong("reduced-at-the-end", f"{where}: {early} of {len(sends)} messages were sent "
                    "before the last gradient was computed; by then all are held at once")


def _traffic(bench: Bench) -> None:
    """Bytes of the first backward pass, and of a second one, which makes as many calls."""
    W = 4
    units, _, once = _run(bench, W)
    _, _, twice = _run(bench, W, reduce_twice)
    least = UNITS * (W - 1) * _length(units[0], W) * BYTES
    most = least + UNITS * 4 * W * BYTES
    for rank, (first, both) in enumerate(zip(once.bytes_sent(), twice.bytes_sent(), strict=True)):
        text = f"W = {W}, rank {rank}: expected {least} B sent, (W-1)/W of the gradients, got"
        if not least <= first <= most:
            verdict = "too-much-traffic" if first > least else "too-little-traffic"
            raise Wrong(verdict, f"{text} {first} B")
        calls = [len(run.trace.calls(rank)) for run in (once, twice)]
        if not least <= both - first <= most or calls[1] > 2 * calls[0]:
            raise Wrong("not-refilled", f"{text} {first} B in {calls[0]} calls in the first "
                        f"backward pass, {both - first} B in {calls[1] - calls[0]} in the second")


ZERO2 = Task("6.3", "reduce_in_backward", "06_zero", (
    Subcheck("one rank", _reduced(reduce_once, 1)),
    Subcheck("two and four ranks: shard.grad is the mean", _reduced(reduce_once, 2, 4), gate=True),
    Subcheck("full gradients of one unit at a time, freed during the backward pass", _peak,
             points=2, gate=True),
    Subcheck("padding, a frozen parameter, a second backward pass", _reduced(reduce_edges, 3, 4)),
    Subcheck("(W-1)/W n sent", _traffic),
), forbid=TORCH_COLLECTIVES + ZERO, hints=hints_of("""
    forbidden: Write it from reduce_scatter of course_lib.collectives and from
        register_post_accumulate_grad_hook.
    deadlock: The collectives of a unit start when its last gradient is there; that order is the
        same on all ranks. Is something started under a condition that differs by rank?
    error: The function raised. A hook gets the parameter; a frozen one (requires_grad False)
        takes no hook.
    nothing-reduced: Register hooks on the units' parameters. They run during the backward pass,
        which comes after your function has returned.
    last-unit-only: Only the last unit was reduced. Do all hooks work on it? A function made in a
        loop sees the loop's variables as they are in the end, when the hooks run. Bind unit, shard
        and whatever else belongs to one unit when you make the hook.
    frozen-awaited: The unit with a frozen parameter waits for a gradient that never comes. Wait
        only for the parameters with requires_grad; in the vector a frozen one counts as zero.
    unit-missing: Some units were reduced and others never. Each unit needs hooks of its own, on
        its parameters, and a set of its own of the parameters that are missing.
    not-refilled: The first backward pass is right, the second is not. Once a unit is reduced,
        begin anew for it: all its trainable parameters are missing again. Otherwise a later pass
        reduces it at every gradient, or never.
    own-gradient: shard.grad is this rank's own gradient. Cutting is not reducing:
        reduce_scatter(parts, group, "mean") adds the other ranks' parts.
    not-divided: reduce_scatter gives the sum. The gradient of all rows is the mean over ranks.
    divided-twice: Divided by the number of ranks twice. "mean" already divides.
    added-twice: The mean is in shard.grad twice. Is the unit reduced once only?
    overwritten: A second backward pass adds to p.grad, and so to shard.grad: add when it is there
        already.
    wrong-part: This is another rank's part: take number group.rank.
    wrong-shape: Pad the unit's gradients with zeros to W * len(shard) elements, and cut W parts.
    missing-gradient: A parameter's gradient is None: it is frozen, counts as zero, and is not
        waited for.
    reduced-at-the-end: You wait until the whole backward pass is over, and by then every rank holds
        all gradients: the peak of ZeRO-1. Reduce a unit as soon as its own last gradient is there.
    not-freed: The gradients are reduced during the backward pass, and stay in p.grad: set p.grad =
        None, or nothing is saved.
    hidden-copy: p.grad is None, and yet something keeps the full gradients alive: a list, a
        buffer, a closure, or a view (a view holds its whole storage).
    high-peak: At some time more than one unit's gradients are held. Free p.grad before the next
        unit's gradients come; a flat copy may live only as long as the reduce-scatter.
    too-much-traffic: Each gradient is reduced once, and only to its owner: a reduce-scatter, not an
        all-reduce.
    too-little-traffic: Each unit's gradients leave in one reduce-scatter.
    wrong-value: The shard is part number group.rank of the unit's gradients laid end to end, in the
        order of unit.parameters(), padded with zeros at the end.
"""))


@checker(ZERO2)
def check_reduce_in_backward(fn, seed=None):
    """Points for `fn(units, shards, group)`: hooks that reduce-scatter and free each unit."""
