"""The recorder inside a rank: what it computes (FLOPs, bytes), sends, waits for and holds becomes a
Trace.

Computation and memory are seen by a dispatch mode, operator by operator, forward and backward;
releases by a finaliser on each storage. Between two communications everything computed is one
`compute` event. With `record="calls"` only the communication is recorded, which costs a tuple per
message.
"""

from __future__ import annotations

import functools
import gc
import sys
import sysconfig
import threading
import time
import weakref
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from .moves import Moves
from .trace import CATEGORIES, MAIN, Event, Trace

_FORMULAS = {getattr(packet, name): formula for packet, formula in flop_registry.items()
             if hasattr(packet, "overloads") for name in packet.overloads()}
_HERE = str(Path(__file__).parent)
_SKIP = (_HERE, str(Path(torch.__file__).parent), sysconfig.get_paths()["stdlib"], "<frozen",
         "<string>")
_is_learners: dict[str, bool] = {}


def learner_site() -> tuple[str, int]:
    """File and line of the innermost frame that is not ours, torch's or the standard library's.

    A call that no learner's code made (a gradient hook, say) is put on the library line that made
    it.
    """
    frame = sys._getframe(1)
    library = None
    while frame is not None:
        file = frame.f_code.co_filename
        learners = _is_learners.get(file)
        if learners is None:
            learners = _is_learners[file] = not file.startswith(_SKIP)
        if learners:
            return file, frame.f_lineno
        if library is None and _is_strategy(file):
            library = file, frame.f_lineno
        frame = frame.f_back
    return library or ("", 0)


def library_line(beyond: str = "\0") -> tuple[str, int]:
    """File and line of the nearest caller outside the engine and the folder `beyond`, for views."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (frame.f_code.co_filename in _ENGINE
                                        or frame.f_code.co_filename.startswith(beyond)):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _is_strategy(file: str) -> bool:
    return file.startswith(_HERE) and file not in _ENGINE


_ENGINE = {str(Path(_HERE, name)) for name in (
    "calls.py", "context.py", "dry.py", "group.py", "recorder.py", "stream.py", "transport.py",
    "launch/child.py")}


MESSAGE = ("peer", "nbytes", "dtype", "shape", "channel", "label", "name", "requests", "site",
           "source", "parts", "moves")


class Recorder:
    """The programs of one rank's streams, as rows that become Events when the run is over."""

    def __init__(self, epoch: float, memory: bool = True):
        self.epoch, self.memory = epoch, memory
        self.programs: dict[str, list[tuple]] = {MAIN: []}
        self.thread = threading.local()
        self.label = ""
        self.held: dict[int, tuple] = {}
        self.moves = Moves(memory)
        self.ops = _Operators(self) if memory else None
        self.since, self.flops, self.nbytes = self.now(), 0, 0

    def now(self) -> float:
        return time.perf_counter() - self.epoch

    def add(self, kind: str, start: float, end: float, stream: str | None = None, **fields) -> None:
        """Append one event to a stream's program; what was computed since the last event comes
        first.
        """
        stream = stream or getattr(self.thread, "stream", MAIN)
        program = self._program(stream, start, end)
        if self.moves.pending:
            fields["moves"] = self.moves.take(stream) + fields.get("moves", ())
        program.append((kind, start, end, fields))

    def message(self, kind: str, handle, start: float | None = None) -> None:
        """Append a message (isend, irecv; send, recv since `start`), in the order of MESSAGE.

        The shortest row that will do, in torch's own terms: this is what recording costs.
        """
        end, group, tensor = self.now(), handle.group, handle.tensor
        call, stream = group._call, group.stream_name
        program = self._program(stream, end if start is None else start, end)
        program.append((
            kind, end if start is None else start, end, handle.peer, tensor.nbytes, tensor.dtype,
            tensor.shape, call.channel if call else group.name, call.op if call else "",
            call.name if call else "", (handle.request,) if start is None else (), handle.site,
            handle.source, self.moves.parts((tensor,)),
            self.moves.take(stream) if self.moves.pending else ()))

    def _program(self, stream: str, start: float, end: float) -> list[tuple]:
        """The stream's rows, ready for an event from `start` to `end`."""
        if stream == MAIN:
            if self.flops or self.nbytes:
                self.flush(start)
            self.since = end
        program = self.programs.get(stream)
        if program is None:
            program = self.programs[stream] = []
        return program

    def flush(self, now: float | None = None) -> None:
        """Close the running `compute` event of the main stream."""
        if self.flops or self.nbytes:
            self.programs[MAIN].append(("compute", self.since, now or self.now(), {
                "label": self.label, "flops": self.flops, "nbytes": self.nbytes,
                "moves": self.moves.take(MAIN)}))
            self.since, self.flops, self.nbytes = now or self.now(), 0, 0

    # -- memory ------------------------------------------------------------------------------------

    def hold(self, tensor: torch.Tensor, category: str, name: str = "") -> None:
        """Count the tensor's whole storage under that category from here until the storage dies."""
        if category not in CATEGORIES:
            raise ValueError(f"category={category!r}: must be one of {', '.join(CATEGORIES)}")
        if not self.memory:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.held:
            self._change("free", key)
            reference = self.held[key][0]
        else:
            reference = weakref.ref(storage, lambda _, key=key: self._dead(key))
        self.held[key] = (reference, category, storage.nbytes(), name)
        self._change("alloc", key)

    def resized(self, tensor: torch.Tensor) -> None:
        """Tell that `storage.resize_` has changed how many bytes a storage holds: no finaliser sees
        that.
        """
        key = tensor.untyped_storage()._cdata
        if key in self.held:
            self._change("free", key)
            reference, category, _, name = self.held[key]
            self.held[key] = (reference, category, tensor.untyped_storage().nbytes(), name)
            self._change("alloc", key)

    def seen(self, tensor: torch.Tensor) -> None:
        """An operator has read or made the tensor: hold its storage unless it is held already."""
        held = self.held.get(tensor.untyped_storage()._cdata)
        if held is None or held[1] == "other":
            if _is_parameter(tensor):
                self.hold(tensor, "parameter")
            elif held is None:
                self.hold(tensor, "other")

    def _dead(self, key: int) -> None:
        if self.memory:
            self._change("free", key)
        del self.held[key]
        self.moves.forget(key)

    def _change(self, kind: str, key: int) -> None:
        _, category, nbytes, name = self.held[key]
        if nbytes:
            now = self.now()
            stream = getattr(self.thread, "stream", MAIN)
            if stream == MAIN and self.flops:
                self.flush(now)
            self.programs.setdefault(stream, []).append(
                (kind, now, now, {"nbytes": nbytes, "category": category, "label": name}))

    # -- the whole run -----------------------------------------------------------------------------

    def __enter__(self) -> Recorder:
        if self.memory:
            self.hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, _unpack)
            self.hooks.__enter__()
            self.ops.__enter__()
        self.since = self.now()
        return self

    def __exit__(self, *error) -> None:
        if self.memory:
            # Circles of objects die now and not by chance: two runs must leave the same events
            gc.collect()
            self.ops.__exit__(*error)
            self.hooks.__exit__(*error)
        self.flush()
        # What dies from here on is the interpreter clearing up, not the program
        self.memory = False

    def _pack(self, tensor: torch.Tensor):
        held = self.held.get(tensor.untyped_storage()._cdata)
        if held is None or held[1] == "other":
            self.hold(tensor, "activation")
        # Detached: a saved output that is returned as it is would keep its own graph alive for
        # ever.
        return tensor.detach(), tensor._version


def _unpack(packed):
    detached, version = packed
    if detached._version != version:
        raise RuntimeError("a tensor saved for the backward pass has been changed in place since: "
                           f"it is at version {detached._version}, the forward pass used {version}")
    return detached


class _Operators(TorchDispatchMode):
    """Counts FLOPs and bytes of every operator, and holds every storage that one reads or makes."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise every rank's first operator imports the compiler: a second of nothing
        return False

    def __init__(self, recorder: Recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func.is_view:
            for t in filter(_is_parameter, args):  # weights met through a view, as w.t()
                self.recorder.seen(t)
            return out
        rec = self.recorder
        inputs, outputs = tensors(args) + tensors(kwargs.values()), tensors((out,))
        for t in inputs:
            rec.seen(t)
        formula = _FORMULAS.get(func)
        if formula:
            rec.flops += formula(*args, **kwargs, out_val=out)
        rec.nbytes += sum([t.nbytes for t in inputs + outputs])
        for t in outputs:
            rec.seen(t)
        rec.moves.operator(func, args, out, getattr(rec.thread, "stream", MAIN))
        return out


def _is_parameter(value) -> bool:
    # Parameter's own instance check would be the dearest part of recording an operator
    return type(value) is not torch.Tensor and isinstance(value, torch.nn.Parameter)


def tensors(values) -> list[torch.Tensor]:
    """The tensors among the values, those in lists and tuples included, in order."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors(value)
    return found


def make_trace(world_size: int, rows: dict[int, dict[str, list[tuple]]],
               rename=lambda file: file) -> Trace:
    """The Trace of all ranks' rows; `rename` turns a learner's file into what a reader should
    see.
    """
    trace, rename = Trace(world_size), functools.cache(rename)
    for rank in sorted(rows):
        for stream, program in rows[rank].items():
            trace.programs[rank, stream] = [_event(row, rename) for row in program]
    return trace


def _event(row: tuple, rename) -> Event:
    kind, start, end, *rest = row
    fields = rest[0] if len(rest) == 1 else dict(zip(MESSAGE, rest))
    if fields.get("dtype"):
        fields["dtype"], fields["shape"] = str(fields["dtype"])[6:], tuple(fields["shape"])
    for key in ("site", "source"):
        if key in fields:
            fields[key] = (rename(fields[key][0]), fields[key][1])
    return Event(kind, start, end, **fields)

