"""What makes a function a collective: its calls are numbered, compared between the ranks, and
bracketed in the trace.

All ranks of a group must make the same calls in the same order. The k-th call of one rank belongs
to the k-th of every other; before any data moves, each rank writes down what it is about to do and
reads what the others wrote.
"""

from __future__ import annotations

import functools
import inspect
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from .board import TEXT
from .context import CallError
from .group import Group
from .recorder import learner_site, library_line, tensors

COLLECTIVES = str(Path(__file__).with_name("collectives"))


@dataclass(frozen=True)
class OpenCall:
    op: str
    number: int
    channel: str
    name: str
    tag: int
    site: tuple[str, int]


def collective(*agree: str):
    """Decorate `f(x, group, ...)`: the arguments named in `agree` must be equal on all ranks.

    "shape" stands for the shape and dtype of the first argument, "shapes" for those of a list. The
    decorated function also takes `name=`, which must agree as well: with it two equal-looking calls
    in different order are an error. Operators inside are not counted one by one; a collective
    records its additions itself (`add_into`).
    """
    def decorate(function):
        signature = inspect.signature(function)
        first, bound = next(iter(signature.parameters)), _binder(signature)

        @functools.wraps(function)
        def call(*args, name: str | None = None, **kwargs):
            arguments = bound(args, kwargs)
            group = arguments.get("group") or arguments.get("inner")
            if not isinstance(group, Group):
                raise TypeError(f"group={group!r}: must be a Group, as the function given to "
                                "run_ranks receives")
            x = arguments[first]
            text = _describe(function.__name__, x, arguments, agree, name)
            outer = begin_call(group, function.__name__, text, name, _first_tensor(x), x)
            result = None
            try:
                with _plain(), torch.no_grad():
                    result = function(*args, **kwargs)
            finally:
                end_call(group, outer, result)
            _hold_result(group, result)
            return result

        call.__signature__ = signature.replace(parameters=[
            *signature.parameters.values(),
            inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)])
        return call

    return decorate


def _binder(signature: inspect.Signature):
    """bound(args, kwargs) -> all arguments by name, as signature.bind finds them, but faster."""
    names = tuple(signature.parameters)
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()
                if parameter.default is not parameter.empty}

    def bound(args: tuple, kwargs: dict) -> dict:
        arguments = {**defaults, **dict(zip(names, args)), **kwargs}
        if len(args) > len(names) or len(arguments) != len(names):
            signature.bind(*args, **kwargs)  # raises TypeError with the reason
        return arguments

    return bound


@contextmanager
def _plain():
    """Neither operator-by-operator counting (a collective says what it adds) nor function modes."""
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        yield


def begin_call(group: Group, op: str, text: str, name: str | None,
               tensor: torch.Tensor | None = None, given=None):
    """Number, publish, compare and record a call on the tensors `given`; returns the call that was
    running on the group before.
    """
    context, outer = group._context, group._call
    if outer is None:
        text = brief(text)
        group._calls += 1
        site = learner_site()
        channel = f"{group.name}#{group._calls}"
        group._call = OpenCall(op, group._calls, channel, name or "", zlib.crc32(channel.encode()),
                               site)
        context.calls.append((group.name, group._calls, op, site))
        if context.writer:
            context.writer.call(group._number, group._calls, text, site)
            _compare(group, text, site)
    else:
        group._call = OpenCall(op, outer.number, outer.channel, name or outer.name, outer.tag,
                               outer.site)
    _bracket(group, "begin", tensor, given)
    return outer


def end_call(group: Group, outer=None, result=None) -> None:
    """Record the end of the running call and go back to the one around it."""
    _bracket(group, "end", None, result)
    group._call = outer


def add_into(x: torch.Tensor, y: torch.Tensor, group: Group, op: str = "sum") -> None:
    """x = x + y (or the larger of both), recorded as a computation of one FLOP per element."""
    recorder = group._context.recorder
    start = recorder.now() if recorder else 0.0
    if x.is_meta:
        pass  # a dry run has no values to add
    elif op == "max":
        torch.maximum(x, y, out=x)
    else:
        x.add_(y)
    if recorder:
        parts = recorder.moves.parts((x, y))
        recorder.add("compute", start, recorder.now(), group.stream_name, label="add",
                     flops=x.numel(), nbytes=3 * x.nbytes,
                     moves=(("add", *parts),) if parts else ())


def copy_into(x: torch.Tensor, y: torch.Tensor, group: Group) -> torch.Tensor:
    """x = y inside the rank's memory, so recorded that a view can follow the data. Returns x."""
    x.copy_(y)
    if group._context.recorder:
        group._context.recorder.moves.note("copy", x, y, group.stream_name)
    return x


def copy_of(x: torch.Tensor, group: Group) -> torch.Tensor:
    """A contiguous copy of x, recorded as by copy_into."""
    return copy_into(torch.empty_like(x, memory_format=torch.contiguous_format), x, group)


def scratch(like: torch.Tensor, group: Group) -> torch.Tensor:
    """Room for an incoming message, held as a communication buffer."""
    return group.hold(torch.empty_like(like, memory_format=torch.contiguous_format), "buffer")


def _compare(group: Group, text: str, site) -> None:
    board, call = group._context.board, group._call
    crc = zlib.crc32(group.name.encode()) | 1 << 32
    for rank in group.ranks:
        if rank == group._context.rank:
            continue
        comm = board.find_comm(rank, crc)
        record = None if comm is None else board.call(rank, comm, call.number)
        if record is not None and record.text != text:
            of = "" if group.name == "world" else f" of group {list(group.ranks)}"
            raise CallError(f"call #{call.number}{of}", {
                group._context.rank: (text, site), rank: (record.text, record.site)})


def brief(text: str) -> str:
    """The text as it fits on the board: a long one is cut, and ends with the checksum of the whole,
    so that equal records mean equal texts.
    """
    whole = text.encode()
    if len(whole) <= TEXT:
        return text
    return f"{whole[:TEXT - 12].decode(errors='ignore')}... {zlib.crc32(whole):08x}"


def _describe(op: str, x, arguments: dict, agree: tuple[str, ...], name: str | None) -> str:
    tensor, parts = _first_tensor(x), [op]
    if tensor is not None and "shape" in agree:
        parts.append(str(tensor.dtype)[6:])
    if tensor is not None and "shape" in agree:
        parts.append(str(tuple(tensor.shape)))
    if tensor is not None and "shapes" in agree:
        dtypes = [str(t.dtype)[6:] for t in x]
        parts.append(dtypes[0] if len(set(dtypes)) == 1 else str(dtypes))
        parts.append(str([tuple(t.shape) for t in x]))
    parts += [f"{key}={arguments[key]}" for key in agree if not key.startswith(("shape", "dtype"))]
    return " ".join(parts + ([f"name={name!r}"] if name else []))


def _first_tensor(x) -> torch.Tensor | None:
    if isinstance(x, (list, tuple)) and x:
        return _first_tensor(x[0])
    return x if isinstance(x, torch.Tensor) else None


def _bracket(group: Group, kind: str, tensor: torch.Tensor | None, whole) -> None:
    recorder, call = group._context.recorder, group._call
    if recorder is None:
        return
    now = recorder.now()
    extra = {} if tensor is None else {"nbytes": tensor.nbytes, "dtype": tensor.dtype,
                                       "shape": tensor.shape}
    if kind == "begin":
        extra["source"] = library_line(COLLECTIVES)
    recorder.add(kind, now, now, group.stream_name, label=call.op, channel=call.channel,
                 name=call.name, site=call.site,
                 parts=recorder.moves.parts(tensors((whole,))), **extra)


def _hold_result(group: Group, result) -> None:
    recorder = group._context.recorder
    if recorder and recorder.memory:
        for tensor in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(tensor, torch.Tensor):
                recorder.seen(tensor)
