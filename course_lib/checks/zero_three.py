"""Exercise 06, task 6.5: a step of ZeRO-3 within its bytes and its memory."""

from __future__ import annotations

import copy

import torch
from torch import nn

from ..collectives import all_gather
from ..launch.errors import RankFailure
from . import sharded
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .reference import LR, OPTIMIZERS, STEPS
from .sharded import BYTES, ZERO, Layer, drawn, judge, owners, rows
from .verdicts import hints_of
from .zero_units import emptied, size

UNITS, DIM, ROWS = 6, 16, 1
RULES = ("no-step", "own-gradient", "not-divided", "divided-twice", "gradients-not-cleared")
LENT = "your unshard does not do what this task needs; it was graded with the course's own"


def unshard(flat, shard, group):
    """Task 6.4 as the course has it, lent where the learner's own is not solved."""
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    for part, arrived in zip(flat.chunk(group.size), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard


class Steps:
    """In a rank: STEPS steps with each optimizer; the shards after each. One name, one run."""

    def __init__(self, name: str, lent: bool):
        self.__qualname__, self.lent = f"{name}, lent {lent}", lent

    def __call__(self, fn, group, layers, batches):
        if self.lent:
            getattr(fn, "__globals__", {}).update(unshard=unshard)
        return [self.train(fn, group, copy.deepcopy(layers), batches, name) for name in OPTIMIZERS]

    def train(self, fn, group, units, batches, name):
        flats, shards = map(list, zip(*[emptied(unit, group) for unit in units]))
        optimizer = OPTIMIZERS[name](shards, lr=LR[name])
        history = []
        for x, y in batches:
            fn(units, flats, shards, x, y, optimizer, group)
            history.append([s.detach().clone() for s in shards])
        return history


class Watched(Steps):
    """One step of SGD; whenever a unit computed, what was whole and where gradients were."""

    def train(self, fn, group, units, batches, name):
        flats, shards = map(list, zip(*[emptied(unit, group) for unit in units]))
        optimizer, watch = torch.optim.SGD(shards, lr=0.1), []
        rooms = [flat.detach() for flat in flats]  # the same storage, whatever becomes of flats

        def note(kind: str, i: int) -> None:
            whole = [j for j, room in enumerate(rooms) if size(room)]
            full = [j for j, u in enumerate(units)
                    if any(p.grad is not None for p in u.parameters())]
            watch.append([kind, i, whole, full])
            if (kind, i) == ("forward", len(units) - 1):
                group.mark("last forward")

        for i, unit in enumerate(units):
            unit.register_forward_pre_hook(lambda *_, i=i: note("forward", i))
            for p in unit.parameters():
                p.register_post_accumulate_grad_hook(lambda _, i=i: note("backward", i))
        group.mark("before")
        fn(units, flats, shards, *batches[0], optimizer, group)
        for shard in shards:
            shard.grad = None
        group.mark("after")
        note("end", 0)
        return watch


def _run(bench: Bench, W: int, edges=False, driver=Steps, record="calls"):
    if driver is Steps and not hasattr(bench, "lent"):
        _lend(bench)
    dim, count = (5, 3) if edges else (DIM, UNITS)
    units = [drawn(bench, Layer(dim, spare=2 * (edges and i == 1)), 65, i) for i in range(count)]
    mine = rows(bench, W, (dim, dim), ROWS)
    name = f"{driver.__name__}, edges {edges}"
    return units, mine, sharded.run(bench, W, driver(name, getattr(bench, "lent", False)),
                                    [(units, m) for m in mine], record)


def _lend(bench: Bench) -> None:
    """Decide with two ranks: the course's own unshard where only that one gets through."""
    failed = {}
    for bench.lent in (False, True):
        try:
            _trained_once(bench, 2, False)
        except (Wrong, RankFailure) as failure:
            failed[bench.lent] = failure
            continue
        break
    bench.lent = list(failed) == [False]
    if bench.lent:
        bench.notes.append(LENT)


def _trained_once(bench: Bench, W: int, edges: bool) -> None:
    units, mine, outcome = _run(bench, W, edges)
    sizes = [sum(p.numel() for p in u.parameters()) for u in units]
    for i, name in enumerate(OPTIMIZERS):
        got = []
        for step in range(STEPS):
            shards = zip(*[values[i][step] for values in outcome.values], strict=True)
            whole = torch.cat([torch.cat(s)[:n] for s, n in zip(shards, sizes)])
            got.append([whole] * W)
        judge(f"{name}, W = {W}", got, name, nn.Sequential(*units), mine, RULES,
              owner=owners(sizes, W))


def _trained(edges: bool, *worlds: int):
    def test(bench: Bench) -> None:
        for W in worlds:
            _trained_once(bench, W, edges)

    return test


def _memory(bench: Bench) -> None:
    W = 4
    units, _, outcome = _run(bench, W, driver=Watched, record=True)
    unit = sum(p.numel() for p in units[0].parameters()) * BYTES
    for rank, (watch, _) in enumerate(outcome.values):
        where = f"W = {W}, {UNITS} units, rank {rank}"
        _one_at_a_time(where, watch)
        held = {mark: outcome.trace.held_at(rank, mark)
                for mark in ("before", "last forward", "after")}
        more = {mark: sum(h.values()) - h["activation"] - sum(held["before"].values())
                for mark, h in held.items()}
        for mark, most in (("last forward", 3 * unit), ("after", unit)):
            if more[mark] > most:
                raise Wrong("hidden-copy", f"{where}, {mark}: expected at most {most} B more than "
                            f"before the step, activations apart, got {more[mark]} B; a unit has "
                            f"{unit} B")
        peak = max(sum(h.values()) - h["activation"] for _, h in outcome.trace.held_bytes(rank))
        peak -= sum(held["before"].values())
        if peak > 7 * unit:
            raise Wrong("gradients-kept", f"{where}: at most {7 * unit} B more than before the "
                        f"step are needed at any time, activations apart; {peak} B were held")


def _one_at_a_time(where: str, watch) -> None:
    for kind, i, whole, full in watch:
        place = f"{where}, {kind} of unit {i}" if kind != "end" else f"{where}, after the step"
        most = 0 if kind == "end" else 1
        if len(whole) > most:
            at_once = (kind, i) == ("forward", 0)
            raise Wrong("gathers-everything" if at_once else "not-freed",
                        f"{place}: expected {'one unit' if most else 'no unit'} to be whole, got "
                        f"units {whole}")
        if set(full) - ({i} if kind == "backward" else set()):
            raise Wrong("gradients-kept", f"{place}: units {full} have full gradients in p.grad")
    for i in range(UNITS):
        times = sum((kind, unit) == ("forward", i) for kind, unit, *_ in watch)
        if times != 1:
            raise Wrong("recomputed", f"{where}: the forward of unit {i} ran {times} times in one "
                        "step, expected once")


def _traffic(bench: Bench) -> None:
    W = 4
    units, _, outcome = _run(bench, W)
    once = (W - 1) * -(-sum(p.numel() for p in units[0].parameters()) // W) * BYTES
    steps = STEPS * len(OPTIMIZERS)
    least, most = steps * (3 * UNITS - 2) * once, steps * (3 * UNITS * once + 4 * W * BYTES)
    for rank, sent in enumerate(outcome.bytes_sent()):
        if not least <= sent <= most:
            raise Wrong("too-much-traffic" if sent > most else "too-little-traffic",
                        f"W = {W}, rank {rank}, {steps} steps: expected {least} to {most} B sent, "
                        f"3(W-1)/W of the parameters a step, got {sent} B")


ZERO3 = Task("6.5", "zero3_step", "06_zero", (
    Subcheck("one rank, 3 steps of SGD and of Adam", _trained(False, 1)),
    Subcheck("two and four ranks", _trained(False, 2, 4), gate=True),
    Subcheck("one unit whole at a time, no full gradients kept, no copy", _memory, points=2,
             gate=True),
    Subcheck("three ranks, padding, parameters without gradient", _trained(True, 3)),
    Subcheck("3(W-1)/W n sent per step", _traffic, points=2),
), forbid=TORCH_COLLECTIVES + ZERO, hints=hints_of("""
    not-implemented: zero3_step is still the stub, or it calls your unshard, which is.
    forbidden: Write the step from unshard, reduce_scatter and autograd.
    deadlock: All ranks gather and reduce the units in the same order.
    died: A unit that holds nothing was used. unshard it before its forward and before its backward.
    still-empty: A unit computes while its storage holds 0 bytes. reshard() after the forward has
        freed the weights, and the backward reads them: unshard the unit again before its backward,
        as before its forward.
    no-gradient-given: out.backward(g) was called with None for g. Walk back from the last unit to
        the first: g is what the next unit's backward has left in its input, inputs.grad.
    graph-cut: detach cuts the graph, and the loss depends on nothing that needs a gradient. The
        next unit's input is a new leaf: out.detach().requires_grad_().
    no-step: The shards have not changed. Set each shard.grad, then call optimizer.step().
    own-gradient: Each shard is updated by its owner's gradient alone: reduce_scatter the unit's
        gradients with "mean".
    not-divided: reduce_scatter gives the sum over ranks; the gradient of all rows is the mean.
    divided-twice: Divided by the number of ranks twice. "mean" already divides.
    gradients-not-cleared: From the second step on old gradients are added: set p.grad = None after
        the reduction, and call optimizer.zero_grad().
    missing-gradient: A parameter that no row uses has p.grad None: it counts as zero.
    gathers-everything: All units are whole before the first one computes: that is the memory of
        plain data parallelism. Gather a unit just before it is used.
    not-freed: A unit stays whole after it was used, so in the end all are. Call its reshard() right
        after its forward, and again after its backward.
    gradients-kept: A unit's full gradients stay in p.grad. Reduce them as soon as its backward is
        over, and set p.grad = None.
    hidden-copy: The units are empty, and their numbers are held elsewhere: clones, a list of
        gathered parts, a global. The second gather is what ZeRO-3 pays instead.
    recomputed: The forward ran again. That saves activations and costs time; ZeRO-3 needs only
        the weights again: keep each unit's output and call output.backward(gradient).
    too-much-traffic: A step gathers each unit twice and reduce-scatters its gradients once.
    too-little-traffic: A step gathers each unit twice (forward, backward; the first and the last
        unit may save one) and reduce-scatters its gradients once.
    wrong-shape: The shards keep their shape.
    wrong-value: Each unit's input needs a gradient of its own: x = out.detach().requires_grad_().
        Walk back from the last unit; what out.backward(g) leaves in the unit's input is the g of
        the unit before.
"""))


@checker(ZERO3)
def check_zero3_step(fn, seed=None):
    """Points for `fn(units, flats, shards, x, y, optimizer, group)`: one step, units one by one."""
