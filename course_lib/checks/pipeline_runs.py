"""What tasks 8.4 and 8.5 share: stages in real ranks, judged by gradients, messages and memory.

Every stage is a small network that maps [ROWS, DIM] to [ROWS, DIM], in float64. Ranks other than 0
get NaN for the inputs, so whoever computes with them is found out.
"""

from __future__ import annotations

import torch
from torch import nn

from .collective_runs import messages
from .machinery import Bench, Outcome, Wrong

ROWS, DIM, INNER = 3, 6, 10
MESSAGE = ROWS * DIM * 8  # bytes
HELD = ROWS * (DIM + INNER) * 8  # bytes that a micro-batch in flight holds: x, and what tanh gave


# -- in the ranks --------------------


def in_order(fn, group, ops, module, xs, ys):
    """The gradient of every parameter after fn, and what ran: [0, n] for the n-th forward, and
    [1, n] for the backward that started from its output.
    """
    log: list[list[int]] = []

    def loss_of(mb, y):
        if group.rank < group.size - 1:
            raise ValueError(f"loss_of({mb}, ...): only the last rank has the targets")
        return (y - ys[mb]).square().mean()

    def forward(_, inputs, y):
        number = sum(kind == 0 for kind, _ in log)
        log.append([0, number])
        if y.requires_grad:
            y.register_hook(lambda _: log.append([1, number]))

    module.register_forward_hook(forward)
    given = [module, xs, loss_of, group]
    fn(*given if ops is None else (ops, *given))
    return [p.grad for p in module.parameters()], log


def in_another_order(fn, group, *given):
    return in_order(fn, group, *given)


def with_few(fn, group, *given):
    return in_order(fn, group, *given)


# -- in the checking process --------------------


def setup(bench: Bench, p: int, m: int):
    """(stages, inputs, targets): one stage a rank, one input and target a micro-batch."""
    draw = bench.generator(p, m)
    stages = [nn.Sequential(nn.Linear(DIM, INNER), nn.Tanh(), nn.Linear(INNER, DIM)).double()
              for _ in range(p)]
    with torch.no_grad():
        for parameter in nn.ModuleList(stages).parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw, dtype=torch.float64) / 2)
    xs, ys = ([torch.randn(ROWS, DIM, generator=draw, dtype=torch.float64) for _ in range(m)]
              for _ in range(2))
    return stages, xs, ys


def run(bench: Bench, p: int, m: int, schedule=None, driver=in_order, record="calls") -> Outcome:
    """fn in p ranks; with a schedule, each rank's list is fn's first argument."""
    stages, xs, ys = setup(bench, p, m)
    nothing = [torch.full_like(x, torch.nan) for x in xs]
    return bench.run(p, driver, [
        (schedule[r] if schedule else None, stages[r], nothing if r else xs,
         ys if r == p - 1 else nothing) for r in range(p)], record)


def expect_gradients(bench: Bench, where: str, p: int, m: int, outcome: Outcome) -> None:
    """Every rank's gradients are those of its stage in one process, for the mean of all losses."""
    stages, xs, ys = setup(bench, p, m)
    got = []
    for rank, (grads, _) in enumerate(outcome.values):
        if not all(isinstance(grad, torch.Tensor) for grad in grads):
            raise Wrong("no-gradient", f"{where}, rank {rank}: expected a gradient for every "
                                       "parameter of the stage, got None")
        got.append(torch.cat([grad.reshape(-1) for grad in grads]))
    alone = [_gradients(stages, x, y) for x, y in zip(xs, ys)]  # [micro-batch][rank], not divided
    total = [sum(rows) for rows in zip(*alone)]
    want = [grad / m for grad in total]
    if _close(got, want):
        return
    rank = next(r for r in range(p) if not _close([got[r]], [want[r]]))
    codes = (v for v, idea in _ideas(stages, xs, alone, total) if _close(got, idea))
    verdict = "inputs-off-rank-0" if got[rank].isnan().any() else "wrong-value"
    if p > 1 and not messages(outcome.trace):
        verdict = "no-communication"
    worst = int((got[rank] - want[rank]).abs().nan_to_num(torch.inf).argmax())
    raise Wrong(
        next(codes, verdict),
        f"{where}, rank {rank}: expected number {worst} of its gradients to be "
        f"{want[rank][worst]:.6f}, as in one process, got {got[rank][worst]:.6f}")


def _ideas(stages, xs, alone, total):
    """(verdict, what each rank's gradient would be) for each wrong idea."""
    p, m = len(stages), len(xs)
    yield "not-scaled", total
    yield "scaled-twice", [grad / m**2 for grad in total]
    yield "scaled-at-every-stage", [grad / m ** (p - rank) for rank, grad in enumerate(total)]
    yield "divided-by-ranks", [grad / p for grad in total]
    for mine in alone:
        yield "one-micro-batch", mine
        yield "one-micro-batch", [grad / m for grad in mine]
    ones = [_gradients(stages[:end], x, None) for end in range(1, p) for x in xs]
    yield "ones-for-gradients", [
        *(sum(grads[end - 1] for grads in ones if len(grads) == end) for end in range(1, p)),
        total[-1] / m]


def _gradients(stages, x, y) -> list[torch.Tensor]:
    """Per stage, flat: of the loss of one micro-batch, or of the sum of the outputs."""
    out = nn.Sequential(*stages)(x)
    loss = out.sum() if y is None else (out - y).square().mean()
    grads = [torch.autograd.grad(loss, list(stage.parameters()), retain_graph=True)
             for stage in stages]
    return [torch.cat([grad.reshape(-1) for grad in mine]) for mine in grads]


def _close(got, want) -> bool:
    return all(torch.allclose(g, w, rtol=1e-6, atol=1e-9) for g, w in zip(got, want))


def expect_order(where: str, schedule, outcome: Outcome) -> None:
    """Every rank ran its forwards and backwards in the order of the list."""
    for rank, (_, log) in enumerate(outcome.values):
        mbs = dict(enumerate(op.mb for op in schedule[rank] if op.kind == "F"))
        got = [("FB"[kind], mbs.get(number, number)) for kind, number in log]
        want = [(op.kind, op.mb) for op in schedule[rank]]
        if got == want:
            continue
        kinds = "".join(kind for kind, _ in got)
        verdict = "order-ignored"
        if kinds == "".join(op.kind for op in schedule[rank]):
            verdict = "micro-batch-ignored"
        elif "F" not in kinds.lstrip("F"):
            verdict = "gpipe-again"
        elif kinds == "FB" * (len(want) // 2):
            verdict = "one-at-a-time"
        words = (" ".join(f"{kind}{mb}" for kind, mb in ops) for ops in (want, got))
        raise Wrong(verdict, f"{where}, rank {rank}: expected {next(words)}, got {next(words)}")


def expect_messages(where: str, m: int, trace) -> None:
    """m activations to the next rank, m gradients to the one before, and nothing else."""
    p, sent = trace.world_size, messages(trace)
    for rank in range(p):
        want = {to: m for to in (rank - 1, rank + 1) if 0 <= to < p}
        mine = [(to, nbytes) for frm, to, nbytes in sent if frm == rank]
        got = {to: sum(peer == to for peer, _ in mine) for to in sorted({to for to, _ in mine})}
        if got == want and all(nbytes == MESSAGE for _, nbytes in mine):
            continue
        much = sum(n for _, n in mine) > MESSAGE * sum(want.values())
        words = ", ".join(f"{n} to rank {to}" for to, n in got.items()) or "none"
        raise Wrong("too-much-traffic" if much else "other-messages",
                    f"{where}, rank {rank}: expected {m} messages of {MESSAGE} B to each "
                    f"neighbour and no others, got {words}, {sum(n for _, n in mine)} B in all")


def expect_held(where: str, schedule, trace, in_flight: list[int]) -> None:
    """Saved activations: those of the micro-batches in flight, and one more as room."""
    p, m = trace.world_size, sum(op.kind == "F" for op in schedule[0])
    for rank, count in enumerate(in_flight):
        most = (count + 1) * HELD + (rank == 0) * m * MESSAGE  # all inputs are there from the start
        most += (rank == p - 1) * (count + 1) * MESSAGE  # what the loss saves
        got = trace.peak_bytes(rank, "activation")
        if got > most:
            raise Wrong("kept-after-backward", f"{where}, rank {rank}: expected at most {most} B "
                        f"of activations, {count} micro-batches in flight, got {got} B")
