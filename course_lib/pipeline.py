"""The pipeline engine: runs a schedule of `schedule/` on the stages of a GPT, in real processes.

Every rank runs its program (schedule/programs.py) from top to bottom: receives are posted when the
op before starts, sends never block, and each op is one of four computations:

====  ===========================================================================================
F     stage(x), and on the last stage the loss of the micro-batch, divided by m
B     its backward: gradients of weights are added to `.grad`, that of x goes to the stage before
I     the same without the weights of linear layers: their inputs and output gradients wait for W
W     those weight gradients
====  ===========================================================================================

What a run records is therefore the trace that `schedule.lower` writes; what the rank holds between
F, I and W is what `in_flight` counts. Embeddings, norms and biases of norms are small: their
gradients come with I (Qi and others, 2023, "Zero Bubble Pipeline Parallelism").

Shape suffixes: B batch, S sequence, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from .group import Group
from .schedule import Action, Op, Placement, as_schedule, programs, step_label, validate
from .weight_gradients import DeferWeights, add_gradient

LossFn = Callable[[Tensor, Tensor], Tensor]


def token_loss(logits_BSV: Tensor, targets_BS: Tensor) -> Tensor:
    """Mean cross-entropy over all tokens."""
    return nn.functional.cross_entropy(logits_BSV.flatten(0, 1), targets_BS.flatten())


class Stages(nn.Module):
    """One rank's stages of a model, and nothing of the others; parameters keep the model's names.

    `parts[s]` is stage s, an nn.Sequential. `shared[peer]` are the parameters that another rank
    holds too: a tied embedding, the copies of a bidirectional placement.
    """

    def __init__(self, model: nn.Module, parts: dict[int, list[nn.Module]], placement: Placement,
                 shared: dict[int, list[nn.Parameter]]):
        super().__init__()
        self.parts = {stage: nn.Sequential(*units) for stage, units in parts.items()}
        self.placement, self.shared, self.dim = placement, shared, model.config.dim
        self.program: tuple = (None, None)  # the schedule that ran last, and what it is for us
        _keep(model, {unit for units in parts.values() for unit in units}, self)


def _keep(module: nn.Module, wanted: set[nn.Module], into: nn.Module) -> nn.Module:
    """Hang the wanted modules below `module` into another one, under the same names."""
    for name, child in module.named_children():
        kept = child if child in wanted else _keep(child, wanted, nn.Module())
        if child in wanted or len(kept._modules):
            into.add_module(name, kept)
    return into


def split_stages(model: nn.Module, placement: Placement, rank: int) -> Stages:
    """The stages that the placement gives this rank: equally many layers each, as far as possible.

    The first also embeds the tokens, the last also makes the logits. Every rank passes the same
    model; it keeps only its own layers, if the caller keeps no other reference to the model.
    ValueError unless there is at least one layer for every stage.
    """
    count, layers = placement.num_stages, len(model.blocks)
    if not 0 <= rank < placement.ranks:
        raise ValueError(f"rank={rank}: must be in 0..{placement.ranks - 1}, the ranks of the "
                         "placement")
    if layers < count:
        raise ValueError(f"layers={layers}: must be at least {count}, one for each stage of the "
                         f"{placement.name} placement")
    embedding, *blocks, head = model.units
    cuts = [layers * s // count for s in range(count + 1)]
    stages = [blocks[a:b] for a, b in zip(cuts, cuts[1:])]
    stages[0].insert(0, embedding)
    stages[-1].append(head)
    held = [{p for s in placement.stages(r) for unit in stages[s] for p in unit.parameters()}
            for r in range(placement.ranks)]
    shared = {peer: [p for p in model.parameters() if p in held[rank] & held[peer]]
              for peer in range(placement.ranks) if peer != rank}
    return Stages(model, {s: stages[s] for s in placement.stages(rank)}, placement,
                  {peer: both for peer, both in shared.items() if both})


def naive_step(stages: Stages, inputs: Tensor, targets: Tensor, group: Group,
               loss_fn: LossFn = token_loss) -> Tensor | float:
    """Forward and backward of the whole batch, one rank after the other: what `naive(p)` is.

    One stage per rank, untied. After: gradients are added to `.grad`; the last rank returns the
    loss, the others 0.0. Cost: B S D elements each way per border; one rank works at a time.
    """
    rank, last, loss = group.rank, group.size - 1, 0.0
    x = inputs
    if rank > 0:
        x = group.recv(_room(stages, inputs, group), rank - 1).requires_grad_()
    y = stages.parts[rank](x)
    if rank < last:
        group.send(y, rank + 1)
        y.backward(group.recv(torch.empty_like(y), rank + 1))
    else:
        loss = loss_fn(y, targets)
        loss.backward()
    if rank > 0:
        group.send(x.grad, rank - 1)
    return loss if rank < last else loss.detach()


# -- the engine ------------------------------------------------------------------------------------


def run_pipeline(stages: Stages, schedule, inputs: Tensor, targets: Tensor, group: Group,
                 loss_fn: LossFn = token_loss) -> Tensor | float:
    """Forward and backward of a batch as the schedule says, on the ranks of the group.

    schedule: of `schedule/`, or a plain list of lists of Op; it runs the m micro-batches into which
    inputs and targets [B, ...] are cut. All ranks pass the same three.
    After: gradients of the batch's mean loss are added to `.grad`, of shared parameters on both
    ranks. Returns the part of that loss whose last stage is here, 0.0 where there is none.

    Cost per rank: a message of B/m S D elements per micro-batch for every stage border it feeds.
    ValueError unless the schedule is legal, for these ranks and stages, and m divides B.
    """
    program, m = _program(stages, schedule, group)
    for name, batch in (("inputs", inputs), ("targets", targets)):
        if len(batch) != len(inputs) or len(batch) % m or not len(batch):
            raise ValueError(f"{name} has {len(batch)} rows: must have as many as inputs, a "
                             f"multiple of the schedule's {m} micro-batches")
    halves = {(op.stage, op.mb) for _, ops, _ in program for op in ops if op.kind == "W"}
    run = _Run(stages, inputs.chunk(m), targets.chunk(m), group, loss_fn, halves)
    requests, earlier = {}, set_shared_gradients_aside(stages)
    for kind, ops, peer in program:
        op = ops[0]
        match kind:
            case "irecv":
                run.data[op] = _room(stages, run.inputs[op.mb], group)
                requests[op] = group.irecv(run.data[op], peer)
            case "isend":
                requests[op] = group.isend(run.data.pop(op), peer)
            case "received" | "sent":
                requests.pop(op).wait()
            case "run":
                with group.label(step_label(ops)):
                    for op in ops:
                        run.compute(op)
    with group.label("sum shared gradients"):
        sum_shared_gradients(stages, group, earlier)
    for name, parameter in stages.named_parameters():
        if parameter.grad is not None:
            group.hold(parameter.grad, "gradient", name)
    return run.loss


class _Run:
    """One rank's state while it runs a schedule."""

    def __init__(self, stages: Stages, inputs, targets, group: Group, loss_fn: LossFn, halves: set):
        self.stages, self.last = stages, stages.placement.num_stages - 1
        self.inputs, self.targets, self.group, self.loss_fn = inputs, targets, group, loss_fn
        # halves: the (stage, micro-batch) whose backward comes as an I and a W
        self.halves = halves
        self.data: dict[Op, Tensor] = {}  # what an op has made, until the op that needs it
        self.open: dict[tuple, tuple] = {}  # (stage, micro-batch) -> x and the end of its graph
        self.later: dict[tuple, DeferWeights] = {}
        self.loss: Tensor | float = 0.0

    def compute(self, op: Op) -> None:
        match op.kind:
            case "F":
                self.forward(op.stage, op.mb)
            case "B" | "I":
                self.backward(op.stage, op.mb)
            case "W":
                self.later.pop((op.stage, op.mb)).add_gradients()

    def forward(self, stage: int, mb: int) -> None:
        x = self.inputs[mb]
        if stage > 0:
            x = self.data.pop(Op(stage - 1, "F", mb)).requires_grad_()
            self.group.hold(x, "activation")
        if (stage, mb) in self.halves:
            with DeferWeights(self.group) as self.later[stage, mb]:
                y = self.stages.parts[stage](x)
        else:
            y = self.stages.parts[stage](x)
        if stage == self.last:
            y = self.loss_fn(y, self.targets[mb]) / len(self.inputs)
            self.loss = self.loss + y.detach()
        else:
            self.data[Op(stage, "F", mb)] = y.detach()
        # The graph is enough: y itself may go as soon as it is sent. A frozen first stage has none.
        self.open[stage, mb] = x, get_gradient_edge(y) if y.requires_grad else None

    def backward(self, stage: int, mb: int) -> None:
        x, y = self.open.pop((stage, mb))
        gy = self.loss.new_ones(()) if stage == self.last else self.data.pop(
            Op(stage + 1, "I", mb))
        if y is not None:
            torch.autograd.backward(y, gy)
        if stage > 0:
            self.data[Op(stage, "I", mb)], x.grad = x.grad, None


def set_shared_gradients_aside(stages: Stages) -> dict[nn.Parameter, Tensor]:
    """What shared parameters hold from earlier batches; after, their `.grad` is None.

    Both ranks hold that sum already: only what this batch adds may be exchanged and added up.
    """
    shared = {parameter for held in stages.shared.values() for parameter in held}
    earlier = {parameter: parameter.grad for parameter in shared if parameter.grad is not None}
    for parameter in earlier:
        parameter.grad = None
    return earlier


def sum_shared_gradients(stages: Stages, group: Group, earlier: dict[nn.Parameter, Tensor]) -> None:
    """After: a parameter that two ranks hold has the sum of both gradients on both, and what was
    set aside is in it again.

    Cost: one message of their elements in each direction; nothing where nothing is shared.
    """
    for peer, held in stages.shared.items():
        parameters = [p for p in held if p.requires_grad]
        if not parameters:
            continue
        mine = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten()
                          for p in parameters])
        theirs = group.exchange(mine, peer, torch.empty_like(mine), peer)
        for p, part in zip(parameters, theirs.split([p.numel() for p in parameters])):
            add_gradient(p, part.view_as(p))
    for parameter, gradient in earlier.items():
        add_gradient(parameter, gradient)


def _program(stages: Stages, schedule, group: Group) -> tuple[list[Action], int]:
    """What this rank does, and the number of micro-batches; kept for the next batch."""
    placement = getattr(schedule, "placement", stages.placement)
    if stages.program[0] != (schedule, placement):
        if len(schedule) != group.size:
            raise ValueError(f"schedule has {len(schedule)} ranks: must have the group's "
                             f"{group.size}")
        if placement != stages.placement:
            raise ValueError(f"schedule is for {placement}: must be for the placement of the "
                             f"stages, {stages.placement}")
        full = as_schedule(schedule, placement)
        validate(full)
        kept = [list(ops) for ops in schedule], placement
        stages.program = kept, (programs(full)[group.rank], full.num_microbatches)
        for name, parameter in stages.named_parameters():
            group.hold(parameter, "parameter", name)
    return stages.program[1]


def _room(stages: Stages, inputs: Tensor, group: Group) -> Tensor:
    """Where a message of one stage to the next goes: [*inputs.shape, D]."""
    with torch._C._DisableTorchDispatch():  # recorded as memory; nothing is computed
        room = torch.empty(*inputs.shape, stages.dim, dtype=next(stages.parameters()).dtype,
                           device=group.device)
    return group.hold(room, "buffer")

