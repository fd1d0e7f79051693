"""Schedules with one direction and one order for all chunks: naive to zero bubble.

Every builder takes p ranks and m micro-batches and returns one list of Op per rank (a `Schedule`).
F_j, B_j, ... below is micro-batch j on the rank's own stage. "Bubble" is the idle time of the rank
with the longest device span, with free transfers; T_F, T_I, T_W are the times of the ops and
S = T_F + T_I + T_W (a B takes T_I + T_W). `forms.py` has the closed forms.
"""

from __future__ import annotations

from ..machine.model import check_whole
from .ops import Op, Schedule, interleaved, linear


def naive(p: int, m: int = 1) -> Schedule:
    """The whole batch through stage 0, then through stage 1, ...: one rank works at a time.

    With micro-batches, odd ranks take them in the opposite order, so that the first one that a rank
    can start on is the last one that the rank before has finished.
    Bubble (p-1) m S; holds m micro-batches.
    """
    _check(p, m)
    turn = [range(m), range(m)[::-1]]
    return _linear(p, lambda r: [*_row(r, "F", turn[r % 2]), *_row(r, "B", turn[(r + p) % 2])])


def gpipe(p: int, m: int) -> Schedule:
    """All forwards, then all backwards (Huang and others, 2018).

    Bubble (p-1) S; holds m micro-batches.
    """
    _check(p, m)
    return _linear(p, lambda r: [Op(r, kind, j) for kind in "FB" for j in range(m)])


def one_f_one_b(p: int, m: int) -> Schedule:
    """As few forwards as needed, then one forward and one backward in turn (PipeDream-Flush).

    Bubble (p-1) S, as GPipe; but rank r holds only min(p - r, m) micro-batches.
    """
    _check(p, m)

    def rank(r: int) -> list[Op]:
        fwd, bwd = _row(r, "F", range(m)), _row(r, "B", range(m))
        warmup = min(p - 1 - r, m)
        steady = [op for pair in zip(fwd[warmup:], bwd) for op in pair]
        return fwd[:warmup] + steady + bwd[m - warmup:]

    return _linear(p, rank)


def interleaved_1f1b(p: int, m: int, v: int = 2) -> Schedule:
    """1F1B with v stages on every rank, p micro-batches at a time through each (Megatron-LM, 2021).

    Bubble (p-1) S / v; rank 0 holds p (1 + (p-1) / (p v)) micro-batches and v times as many
    messages are sent. m must be a multiple of p.
    """
    _check(p, m, v)
    _check_multiple(p, m)

    def rank(r: int) -> list[Op]:
        fwd, bwd = _chunk_rows(r, p, m, v)
        warmup = min(2 * (p - 1 - r) + (v - 1) * p, m * v)
        steady = [op for pair in zip(fwd[warmup:], bwd) for op in pair]
        return fwd[:warmup] + steady + bwd[m * v - warmup:]

    return Schedule([rank(r) for r in range(p)], interleaved(p, v))


def looped_bfs(p: int, m: int, v: int = 2) -> Schedule:
    """GPipe with v stages on every rank: all micro-batches through one stage, then the next.

    Bubble (p-1) S / v; holds m micro-batches. m must be a multiple of p.
    """
    _check(p, m, v)
    _check_multiple(p, m)
    chunks = range(v)
    return Schedule([[*(Op(c * p + r, "F", j) for c in chunks for j in range(m)),
                      *(Op(c * p + r, "B", j) for c in chunks[::-1] for j in range(m))]
                     for r in range(p)], interleaved(p, v))


def zb_h1(p: int, m: int) -> Schedule:
    """1F1B with the backward taken apart: a W fills the time in which 1F1B waits (Qi and others,
    2023).

    Bubble (p-1) (T_F + T_I - T_W); holds at most p micro-batches, as 1F1B does on rank 0.
    """
    _check(p, m)

    def rank(r: int) -> list[Op]:
        fwd, dx, dw = (_row(r, kind, range(m)) for kind in "FIW")
        warmup = min(p - 1 - r, m)
        ops = fwd[:warmup]
        for j in range(m):
            ops += [*_at(fwd, warmup + j), dx[j], *_at(dw, j - r)]
        return ops + dw[max(0, m - r):]

    return _linear(p, rank)


def zb_h2(p: int, m: int) -> Schedule:
    """More forwards first, so that no rank waits at all: zero bubble at equal times, m >= 2p-1.

    Bubble (p-1) (T_F + T_I - 2 T_W); holds 2p-1 micro-batches (Qi and others, 2023).
    """
    _check(p, m)

    def rank(r: int) -> list[Op]:
        fwd, dx, dw = (_row(r, kind, range(m)) for kind in "FIW")
        warmup = min(2 * (p - r) - 1, m)
        ops = fwd[:warmup]
        for j in range(m):
            ops += [dx[j], *_at(dw, j - 2 * r), *_at(fwd, warmup + j)]
        return ops + dw[max(0, m - 2 * r):]

    return _linear(p, rank)


def interleaved_zb(p: int, m: int, v: int = 2) -> Schedule:
    """ZB-H1 with v stages on every rank, as torch's ScheduleInterleavedZeroBubble.

    v = 1 is ZB-H1. m must be a multiple of p.
    """
    _check(p, m, v)
    _check_multiple(p, m)

    def rank(r: int) -> list[Op]:
        fwd, bwd = _chunk_rows(r, p, m, v)
        dx, dw = ([op._replace(kind=kind) for op in bwd] for kind in "IW")
        warmup = min((v - 1) * p + p - 1 - r, m * v)
        ops = fwd[:warmup]
        for j in range(m * v):
            ops += [*_at(fwd, warmup + j), dx[j], *_at(dw, j - r)]
        return ops + dw[max(0, m * v - r):]

    return Schedule([rank(r) for r in range(p)], interleaved(p, v))


def _linear(p: int, rank) -> Schedule:
    return Schedule([rank(r) for r in range(p)], linear(p))


def _row(stage: int, kind: str, mbs) -> list[Op]:
    return [Op(stage, kind, mb) for mb in mbs]


def _at(row: list[Op], j: int) -> list[Op]:
    """The j-th op where there is one, as a list to unpack."""
    return [row[j]] if 0 <= j < len(row) else []


def _chunk_rows(r: int, p: int, m: int, v: int) -> tuple[list[Op], list[Op]]:
    """All forwards and all backwards of a rank: p micro-batches through a chunk, then the next."""
    turns = [(k % (p * v) // p, k // (p * v) * p + k % p) for k in range(m * v)]
    return ([Op(chunk * p + r, "F", mb) for chunk, mb in turns],
            [Op((v - 1 - chunk) * p + r, "B", mb) for chunk, mb in turns])


def _check(p: int, m: int, v: int = 1) -> None:
    for name, value in (("p", p), ("m", m), ("v", v)):
        check_whole(name, value)


def _check_multiple(p: int, m: int) -> None:
    if m % p:
        raise ValueError(f"m={m}: must be a multiple of p={p}, since p micro-batches at a time go "
                         "through a chunk")
