"""Schedules that run the model in two directions at once: ZB-V, DualPipe, DualPipeV.

A rank holds two stages, 0 and 1 below. Its order is spelled in words such as "F0" (forward on the
first of the two), and each word takes the next micro-batch of its own.
"""

from __future__ import annotations

from collections import Counter, deque

from .builders import _check
from .ops import Op, Schedule, bidirectional, v_shape


def zb_v(p: int, m: int) -> Schedule:
    """Zero bubble in the memory of 1F1B: the model goes out over the ranks and back in a V.

    Zero bubble at T_F = T_I = T_W and m >= 2p-1; every rank holds p micro-batches; twice the
    messages of 1F1B (Qi and others, 2024; the order of torch's ScheduleZBVZeroBubble).
    """
    _check(p, m)
    n = max(m, 2 * p - 1)  # the order is made for at least so many; those beyond m are left out

    def rank(r: int) -> list[Op]:
        last_f0 = n - 2 * p + r + 1
        words = (["F0"] * (2 * (p - r) - 1) + ["F1", "F0"] * r + ["F1", "I1", "W1"] * (p - r)
                 + ["F0", "I0", "W0", "F1", "I1", "W1"] * last_f0
                 + ["I0", "W0", "F1", "I1", "W1"] * (n - p - last_f0)
                 + ["I0", "I1"] * r
                 + ["I0", "W0"] * (p - r) + ["W1"] * r + ["W0"] * r)
        return [op for op in _spell(words, [r, 2 * p - 1 - r])[0] if op.mb < m]

    return Schedule([rank(r) for r in range(p)], v_shape(p))


def dualpipe(p: int, m: int) -> Schedule:
    """Half of the micro-batches start at rank 0, half at rank p-1; forwards overlap backwards.

    Bubble (p/2 - 1) (T_F&B + T_B - 3 T_W), holds p+1 micro-batches and the weights twice
    (DeepSeek-V3, 2024). p and m must be even, m >= 2p. Micro-batches m/2 and up run from rank p-1.
    """
    check_dual("dualpipe", p, m)
    ranks, overlapped = [], {}
    for r in range(p):
        q = min(r, p - 1 - r)
        starts = [0, m // 2] if r == q else [m // 2, 0]
        ops, pairs = _spell(_dual_words(p // 2, q, m // 2), [q, p - 1 - q], starts)
        ranks.append(ops)
        overlapped.update(pairs)
    return Schedule(ranks, bidirectional(p, m), overlapped)


def dualpipe_v(p: int, m: int) -> Schedule:
    """DualPipe cut in half: 2p stages on p ranks in a V, no weights twice. m must be at least 2p.

    Bubble (p-1) (T_F&B + T_B - 3 T_W) in times of a stage, half a rank's layers (DeepSeek, 2025).
    """
    check_dual("dualpipe_v", p, m)
    ranks, overlapped = [], {}
    for r in range(p):
        ops, pairs = _spell(_dual_words(p, r, m), [r, 2 * p - 1 - r])
        ranks.append(ops)
        overlapped.update(pairs)
    return Schedule(ranks, v_shape(p), overlapped)


def check_dual(name: str, p: int, m: int) -> None:
    """ValueError for a p and m of which there is no DualPipe, or DualPipeV."""
    _check(p, m)
    if name == "dualpipe" and (p % 2 or m % 2 or m < 2 * p):
        raise ValueError(f"p={p}, m={m}: DualPipe needs even p and even m, m at least 2p")
    if m < 2 * p:
        raise ValueError(f"m={m}: DualPipeV needs m of at least 2p={2 * p}")


def _dual_words(h: int, q: int, n: int) -> list[str]:
    """The order of the rank q steps inside its half of h ranks, n micro-batches each way.

    "F0&B1" is an overlapped pair; "W" is the oldest weight gradient that is still owed.
    """
    outer = h - q - 1  # ranks between this one and the middle
    pairs = ["F0&B1", "F1&B0"] * (n - 2 * h + q + 1)
    if outer == 0:
        pairs[:1] = ["F0", "B1"]
    drain = ["B1", "B0"] * (q + 1)
    drain[q + 1:] = [word.replace("B", "I") for word in drain[q + 1:]]
    return (["F0"] * (2 * outer) + ["F0", "F1"] * (q + 1) + ["I1", "W", "F1"] * outer + pairs
            + ["B1", "F1&B0"] * outer + drain + ["W", "I0"] * outer + ["W"] * (q + 1))


def _spell(words: list[str], stages: list[int],
           starts: list[int] | None = None) -> tuple[list[Op], dict[Op, Op]]:
    """Words to ops, and the overlapped pairs among them. `starts`: first micro-batch each way."""
    ops, pairs, owed, count = [], {}, deque(), Counter()
    for word in words:
        if word == "W":
            ops.append(owed.popleft())
            continue
        for part in word.split("&"):
            kind, way = part[0], int(part[1])
            counted = (kind.replace("B", "I"), way)  # B and I draw on the same backwards
            mb = count[counted] + (starts[way] if starts else 0)
            count[counted] += 1
            ops.append(Op(stages[way], kind, mb))
            if kind == "I":
                owed.append(ops[-1]._replace(kind="W"))
        if "&" in word:
            pairs[ops[-2]] = ops[-1]
    return ops, pairs
