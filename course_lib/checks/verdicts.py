"""Verdict codes and their general hints: what a run that failed says about the answer.

A code names one misconception, in every exercise the same; class reports count them.
"""

from __future__ import annotations

import re
import textwrap

import torch

from ..launch.errors import CallMismatch, Deadlock, RankDied, RankFailure, RankTimeout

BY_CLASS = {
    Deadlock: "deadlock",
    CallMismatch: "call-mismatch",
    RankTimeout: "time-limit",
    RankDied: "died",
}
BY_ERROR = {
    "NotImplementedError": "not-implemented",
    "Forbidden": "forbidden",
    "SystemExit": "exit",
    "NoAnswer": "no-answer",
    "Refused": "refused",
}
FINAL = {"not-implemented", "time-limit", "died", "exit", "no-answer", "refused", "syntax-error"}


def hints_of(text: str) -> dict[str, str]:
    """{verdict: hint} from lines "verdict: hint", each continued by lines indented deeper."""
    hints, code = {}, ""
    for line in textwrap.dedent(text).strip().splitlines():
        if line.startswith(" "):
            hints[code] += " " + line.strip()
        else:
            code, _, hints[code] = line.partition(": ")
    return hints


HINTS = hints_of("""
deadlock: Each rank waits for a call that another rank only makes later. Read the
    cycle above from rank to rank: which of them could post its other side first?
call-mismatch: Two ranks disagree about one call. Every rank makes the same
    collective calls in the same order, with the same shape and dtype.
time-limit: The ranks never finished. Look for a loop whose condition never becomes
    false.
died: The process of a rank ended without a Python error: os._exit, a signal, or no
    memory left.
exit: A rank ends by returning from the function; leave out sys.exit().
not-implemented: The stub is still there: put your code in the place of the raise.
forbidden: This task asks you to write that function yourself, from send, recv,
    isend, irecv and exchange.
error: The function raised. The line is named above; the same code runs in every
    rank, so ask what is special about this one.
no-function: Give the function itself, without calling it: check_name(name).
cannot-travel: The function uses something that cannot be sent to another process,
    such as an open file.
no-answer: The cell of this task holds no function of this name. Take a fresh copy
    of the cell from the exercise and put your code into it.
wrong-dtype: Sender and receiver disagree about the dtype. Make what you receive into
    with the dtype of the tensor that you were given: new_empty and empty_like do that.
syntax-error: Python cannot read the cell. Run it in the notebook first.
refused: A graded function computes and communicates. It starts no processes, ends
    none, and opens no solution.
""")


def of(failure: RankFailure) -> tuple[str, str]:
    """(verdict, message) of a run that failed."""
    verdict = BY_CLASS.get(type(failure)) or BY_ERROR.get(failure.kind, "error")
    world_size = getattr(failure, "world_size", None)
    return verdict, f"W = {world_size}: {failure}" if world_size else str(failure)


def disagreement(message: str) -> tuple[int, torch.dtype, int, torch.dtype] | None:
    """Bytes and dtype that were sent, and those that were to be received; None if it is not about
    one message.
    """
    sides = [re.search(rf"{verb} (\d+) B of (\w+)", message) for verb in ("sends", "receives")]
    if not all(sides):
        return None
    sent, received = ((int(side[1]), getattr(torch, side[2])) for side in sides)
    return *sent, *received


def show_tensor(x, limit: int = 8) -> str:
    """A tensor as a short list: [1, 2.5, ...]; shape and dtype when it is no plain vector."""
    if not isinstance(x, torch.Tensor):
        return repr(x)
    values = [f"{v:.6g}" for v in x.reshape(-1)[:limit].double().tolist()]
    text = "[" + ", ".join(values) + (", ...]" if x.numel() > limit else "]")
    return text if x.dim() == 1 else f"{text} (shape {tuple(x.shape)})"
