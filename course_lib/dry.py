"""dry_run: the trace of a run that does not take place.

The same function runs once per rank, alone, on meta tensors (shapes without values), with a Group
that only records: a send is forgotten, a receive is over at once. The Trace equals the one of
`run_ranks`, except for the wall clock, as long as what the function does depends on shapes and not
on values. It is how 256 ranks are shown on a laptop.
"""

from __future__ import annotations

import copy
import gc
import re
import time
from contextlib import contextmanager

import torch
from torch.utils._pytree import tree_leaves, tree_map

from .context import Context, check_record
from .group import Group
from .launch import errors
from .recorder import Recorder, make_trace
from .shapes import NotToldYet
from .trace import Trace
from .transport import DryTransport

# Dry runs of all ranks until each knows the sizes that the others bring; one where sizes are equal
PASSES = 8
# torch's words when a value is asked for
_NO_VALUE = re.compile(r"\b[Mm]eta (tensor|device)|data-independent implementation")


class ValueNeeded(RuntimeError):
    """The function looked at the value of a tensor; in a dry run tensors have none."""


def dry_run(fn, world_size: int, *args, record: bool | str = True, **kwargs) -> Trace:
    """The Trace of fn(group, *args, **kwargs) on `world_size` ranks, without processes and without
    numbers.

    Tensors, modules and optimizers among the arguments are replaced by meta copies, and every
    tensor that fn makes is meta. Ranks that would deadlock are not noticed here; `replay` of the
    trace reports them.

    Raises ValueNeeded when fn asks for a tensor's value (`.item()`, `if x > 0`), ValueError for a
    bad argument, and for a real tensor that reaches fn in another way than as argument. Cost: about
    20 us per message on top of fn itself (256 ranks in a ring, 130,560 exchanges: seconds).
    """
    if isinstance(world_size, bool) or not isinstance(world_size, int) or world_size < 1:
        raise ValueError(f"world_size={world_size!r}: must be a whole number of at least 1")
    check_record(record)
    transport = DryTransport()
    for _ in range(PASSES):
        transport.missed = False
        with _no_collection():
            rows = _all_ranks(fn, world_size, transport, args, kwargs, record)
            if not transport.missed:
                return make_trace(world_size, rows, errors.readable)
    raise ValueNeeded(f"after {PASSES} dry runs a rank still waits to hear what another brings to "
                      "a collective: the sizes depend on each other. Use run_ranks")


def _all_ranks(fn, world_size, transport, args, kwargs, record) -> dict[int, dict]:
    rows = {}
    for rank in range(world_size):
        recorder = Recorder(time.perf_counter(), memory=record is True)
        context = Context(rank, world_size, transport, torch.device("meta"), recorder=recorder)
        group = Group(context, "world", tuple(range(world_size)))
        with torch.device("meta"):
            mine, options = _on_meta((args, kwargs))
            try:
                with recorder:
                    # Kept until the recording ends, as a rank keeps what it will send back
                    result = fn(group, *mine, **options)
                del result
            except NotToldYet:
                pass  # this rank goes further in the next pass
            except (RuntimeError, NotImplementedError, TypeError) as error:
                raise _explained(error, rank) from error
        rows[rank] = recorder.programs
        gc.freeze()
    return rows


@contextmanager
def _no_collection():
    """Without the cycle collector, which would look at every row again and again: a third of the
    time. Each rank's recorder calls it once, for what is new.
    """
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if enabled:
            gc.enable()


def _on_meta(given):
    """The same arguments on meta tensors. What two of them share, as an optimizer its module's
    parameters, their copies share too.
    """
    copied = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer)
    leaves, memo = [x for x in tree_leaves(given) if isinstance(x, copied)], {}
    for tensor in (tensor for leaf in leaves for tensor in _tensors_of(leaf)):
        if id(tensor) in memo:
            continue
        memo[id(tensor)] = tensor.detach().to("meta")
        if isinstance(tensor, torch.nn.Parameter):
            memo[id(tensor)] = torch.nn.Parameter(memo[id(tensor)], tensor.requires_grad)
    return tree_map(lambda x: copy.deepcopy(x, memo) if isinstance(x, copied) else x, given)


def _tensors_of(leaf) -> list[torch.Tensor]:
    if isinstance(leaf, torch.Tensor):
        return [leaf]
    if isinstance(leaf, torch.nn.Module):
        return [*leaf.parameters(), *leaf.buffers()]
    state = [value for values in leaf.state.values() for value in values.values()]
    found = [t for t in tree_leaves([leaf.param_groups, state]) if isinstance(t, torch.Tensor)]
    return [t for t in found if t.dim()]  # Adam reads the value of its counter, which stays real


def _explained(error: Exception, rank: int) -> Exception:
    """The same error, unless it comes from a meta tensor that has no value to give, or from a real
    one beside it.
    """
    if re.search("not on the expected device (meta|cpu)", str(error)):
        return ValueError(f"rank {rank} computes with a real tensor beside those of the dry run: "
                          "make it inside the function, or pass it (or its module) as an argument")
    if not _NO_VALUE.search(str(error)):
        return error
    what = str(error).splitlines()[0]
    return ValueNeeded(f"rank {rank} needs the value of a tensor ({what}): what it does then "
                       "depends on data, and a dry run has none. Use run_ranks, or decide by "
                       "shapes")
