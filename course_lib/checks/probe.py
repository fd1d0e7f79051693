"""The part of a check that lives inside the ranks: load the learner's function, run it, send plain
data back.

The learner's function arrives as bytes and is loaded only after the forbidden functions have been
replaced, so a name imported in a notebook cell meets the replacement too. What it returns leaves
the rank as numbers, text and raw bytes: the checking process never compares an object that the
learner's code has made.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module

import torch

TORCH_COLLECTIVES = tuple(
    f"torch.distributed.{name}"
    for name in (
        "all_reduce",
        "all_gather",
        "all_gather_into_tensor",
        "all_to_all",
        "all_to_all_single",
        "broadcast",
        "gather",
        "reduce",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "scatter",
        "all_gather_object",
        "broadcast_object_list",
        "gather_object",
        "scatter_object_list",
        "send",
        "recv",
        "isend",
        "irecv",
        "batch_isend_irecv",
    )
) + ("torch.nn.parallel.DistributedDataParallel",)


class Forbidden(Exception):
    """The answer called what the task asks it to write."""


@dataclass
class Probe:
    """Run in each rank by the launcher: `driver(fn, group, *args of this rank)`, its result made
    plain.

    `load` turns `payload` into the learner's function. `args` holds one pickled tuple per rank.
    """

    load: Callable
    payload: bytes
    driver: Callable
    args: list[bytes]
    forbid: tuple[str, ...] = ()

    def __call__(self, group):
        args, self.args = pickle.loads(self.args[group.rank]), []
        with forbidden(self.forbid):
            fn = self.load(self.payload)
            with torch.random.fork_rng(devices=[]):
                result = self.driver(fn, group, *args)
        return plain(result)


@contextmanager
def forbidden(paths: tuple[str, ...]):
    """While it lasts, the named functions raise `Forbidden` wherever a loaded module of the course
    has them.
    """
    changed = []
    for path in paths:
        module, _, name = path.rpartition(".")
        original = getattr(import_module(module), name, None)
        if original is None:
            continue
        homes = {module} | {m for m in list(sys.modules) if m.partition(".")[0] == "course_lib"}
        for home in homes:
            scope = vars(sys.modules[home])
            for alias in [key for key, value in scope.items() if value is original]:
                changed.append((scope, alias, original))
                scope[alias] = _refusal(path)
    try:
        yield
    finally:
        for scope, alias, original in changed:
            scope[alias] = original


def _refusal(path: str):
    def refuse(*args, **kwargs):
        raise Forbidden(f"{path.rpartition('.')[2]} is not allowed in this task")

    return refuse


def plain(value):
    """Tensors, numbers, text and lists of them as tagged builtins; anything else as the name of its
    type.
    """
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            data = torch.Tensor.detach(value).cpu().contiguous()
            raw = data.reshape(-1).view(torch.uint8).numpy().tobytes() if data.numel() else b""
            return ("tensor", str(data.dtype).removeprefix("torch."), tuple(data.shape), raw)
    if type(value) in (list, tuple):
        return ("list", [plain(item) for item in value])
    if value is None or type(value) in (bool, int, float, str):
        return ("value", value)
    return ("other", type(value).__name__)


def unplain(data):
    """The other way, in the checking process. Raises ValueError for anything that `plain` cannot
    have written.

    What was of another type comes back as `Other(its type's name)`, which equals nothing.
    """
    if type(data) is not tuple or not data or type(data[0]) is not str:
        raise ValueError("a rank sent back something else than plain data")
    match data:
        case ("tensor", dtype, shape, raw) if type(raw) is bytes and type(dtype) is str:
            kind, size = getattr(torch, dtype), tuple(int(n) for n in shape)
            return (
                torch.frombuffer(bytearray(raw), dtype=kind).reshape(size)
                if raw
                else torch.empty(size, dtype=kind)
            )
        case ("list", items) if type(items) is list:
            return [unplain(item) for item in items]
        case ("value", value) if value is None or type(value) in (bool, int, float, str):
            return value
        case ("other", name) if type(name) is str:
            return Other(name)
    raise ValueError("a rank sent back something else than plain data")


@dataclass(frozen=True, eq=False)
class Other:
    """Stands for a result that is no tensor, number, text or list."""

    kind: str
