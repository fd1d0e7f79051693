"""Parts of a trace: one collective call, to be replayed and looked at by itself."""

from __future__ import annotations

from ..trace import SENDS, Trace


def one_call(trace: Trace, number: int | None = None) -> Trace:
    """The trace of one collective call: number 0, 1, .. of those that sent anything.

    None: the only one if nothing was sent outside it, else the whole trace.
    """
    calls = {key: outermost(program) for key, program in trace.programs.items()}
    if number is None:
        outside = any(e.kind in SENDS and not any(a <= i < b for a, b in calls[key])
                      for key, program in trace.programs.items() for i, e in enumerate(program))
        count = max((len(_of_rank(calls, trace, r)) for r in range(trace.world_size)), default=0)
        if outside or count != 1:
            return trace
        number = 0
    found = Trace(trace.world_size)
    for rank in range(trace.world_size):
        mine = _of_rank(calls, trace, rank)
        if not 0 <= number < len(mine):
            raise ValueError(f"call={number}: rank {rank} has made {len(mine)} collective calls")
        key, (first, last) = mine[number]
        found.programs[key] = trace.programs[key][first:last]
    return found


def _of_rank(calls, trace: Trace, rank: int) -> list[tuple]:
    return [((rank, stream), call) for stream in trace.streams(rank)
            for call in calls.get((rank, stream), ())]


def outermost(program) -> list[tuple[int, int]]:
    """First and last-plus-one index of the outermost calls, those that only agree left out."""
    found, depth, start = [], 0, 0
    for i, event in enumerate(program):
        if event.kind == "begin":
            start = i if depth == 0 else start
            depth += 1
        elif event.kind == "end":
            depth -= 1
            if depth == 0 and event.label != "split":
                found.append((start, i + 1))
    return found
