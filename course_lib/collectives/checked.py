"""What collectives refuse, because it would hang or give nonsense."""

from __future__ import annotations

import torch

from ..context import check_dtype
from ..group import Group

OPS = ("sum", "mean", "max")


def check_tensor(x: torch.Tensor, group: Group, op: str = "sum", root: int = 0) -> None:
    """Refuse what would hang or give nonsense, naming the argument, its value and the rule."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x={type(x).__name__}: must be a tensor")
    if not x.is_contiguous():
        raise ValueError(f"x has shape {tuple(x.shape)} and strides {x.stride()}: must be "
                         "contiguous, because it "
                         "is changed in place; call it on x.contiguous() and copy the result back")
    if x.is_conj() or x.is_neg():
        raise ValueError("x is a conjugate or negative that torch has not computed yet: call it on "
                         "x.resolve_conj().resolve_neg()")
    check_dtype(x)
    check_op(op, x)
    check_root(root, group)


def check_op(op: str, x: torch.Tensor) -> None:
    if op not in OPS:
        raise ValueError(f"op={op!r}: must be one of {', '.join(OPS)}")
    if op == "mean" and not (x.is_floating_point() or x.is_complex()):
        raise ValueError(f"op='mean' on {x.dtype}: a mean needs a floating-point tensor")
    if op == "max" and x.is_complex():
        raise ValueError(f"op='max' on {x.dtype}: complex numbers have no order")


def check_segments(segments: int) -> None:
    if not isinstance(segments, int) or segments < 1:
        raise ValueError(f"segments={segments!r}: must be a whole number of at least 1")


def check_root(root: int, group: Group) -> None:
    if not isinstance(root, int) or not 0 <= root < group.size:
        raise ValueError(f"root={root!r}: must be a rank of the group, 0..{group.size - 1}")


def check_parts(parts, group: Group, op: str = "sum") -> list[torch.Tensor]:
    if not isinstance(parts, (list, tuple)) or not all(isinstance(p, torch.Tensor) for p in parts):
        raise TypeError(f"parts={type(parts).__name__}: must be a list of tensors, one per rank")
    if len(parts) != group.size:
        raise ValueError(f"parts has {len(parts)} tensors: must have one per rank, {group.size} in "
                         "this group")
    for part in parts:
        check_dtype(part)
        check_op(op, part)
    return [part.contiguous().resolve_conj().resolve_neg() for part in parts]


def divide(x: torch.Tensor, group: Group, op: str) -> torch.Tensor:
    """The sum x, divided by the number of ranks if op is "mean"."""
    return x.div_(group.size) if op == "mean" else x
