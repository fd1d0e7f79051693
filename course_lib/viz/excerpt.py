"""Parts of a trace: one collective call, to be replayed and looked at by itself."""

from __future__ import annotations

from ..trace import MAIN, SENDS, Trace


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


def between(trace: Trace, begin: str, end: str) -> tuple[Trace, Trace]:
    """What the ranks did before the last mark `begin`, and from there to the mark `end` after it.

    Background streams are cut where their jobs were given. ValueError without the marks.
    """
    before, inside = Trace(trace.world_size), Trace(trace.world_size)
    for rank in range(trace.world_size):
        program = trace.program(rank)
        first = max((i for i, e in enumerate(program) if _is_mark(e, begin)), default=None)
        last = next((i for i, e in enumerate(program)
                     if _is_mark(e, end) and first is not None and i > first), None)
        if last is None:
            raise ValueError(f"marks {begin!r} and {end!r}: rank {rank} has not passed both")
        for stream in trace.streams(rank):
            own = trace.program(rank, stream)
            a, b = (first, last + 1) if stream == MAIN else (
                _jobs(own, stream, program[:i]) for i in (first, last))
            before.programs[rank, stream], inside.programs[rank, stream] = own[:a], own[a:b]
    return before, inside


def _is_mark(event, mark: str) -> bool:
    return event.kind == "record" and event.event == mark


def _jobs(own: list, stream: str, main: list) -> int:
    """How much of a background stream's program are the jobs given in this part of the main one."""
    given = sum(e.kind == "record" and e.event.startswith(f"{stream}:given") for e in main)
    return next((i + 1 for i, e in enumerate(own) if _is_mark(e, f"{stream}:done{given}")), 0)
