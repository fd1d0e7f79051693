"""What stands beside cells: what each rank does at a time, bytes so far, the run in numbers."""

from __future__ import annotations

from .rows import bytes_text, clock, count_text, time_text


def figures(timeline) -> str:
    """The run in numbers: messages, steps, bytes sent by the ranks, makespan."""
    starts = {m.start for m in timeline.messages}
    sent = [sum(m.nbytes for m in timeline.messages if m.src == rank)
            for rank in range(timeline.world_size)]
    each = (f"{bytes_text(sent[0])} sent by each rank" if len(set(sent)) == 1 else
            "sent by rank " + ", ".join(f"{r}: {bytes_text(n)}" for r, n in enumerate(sent)))
    steps = f" in {count_text(len(starts), 'step')}" if timeline.machine == "unit steps" else ""
    return (f"{count_text(len(timeline.messages), 'message')}{steps}, {each}, makespan "
            f"{time_text(timeline.makespan, clock(timeline.makespan))}")


def bytes_so_far(timeline, rank: int, end: str) -> list:
    """A meter's series: bytes that the rank has sent (end "src") or received ("dst")."""
    points, total, kind = [[0.0, {}]], 0, "send" if end == "src" else "recv"
    for m in sorted(timeline.messages, key=lambda m: m.end):
        if getattr(m, end) == rank and m.nbytes:
            points.append([m.start, {kind: total} if total else {}])
            total += m.nbytes
            points.append([m.end, {kind: total}])
    return points


def status(panel, world_size) -> list[list]:
    """Per rank, what its bars say from when on: [time, kind, text]."""
    found = []
    for rank in range(world_size):
        row = panel["rows"].index(f"rank {rank}")
        bars = [bar for bar in panel["bars"] if bar[0] == row]
        entries = []
        for time in sorted({t for bar in bars for t in bar[1:3]}):
            now = sorted((b for b in bars if b[1] <= time < b[2]), key=lambda bar: bar[5])
            kind = "" if not now else "wait" if {b[3] for b in now} == {"wait"} else now[0][3]
            text = " ".join(b[4] if b[3] != "wait" else f"waits {b[4]}" for b in now)
            if not entries or entries[-1][1:] != [kind, text]:
                entries.append([time, kind, text])
        found.append(entries)
    return found


def kind_at(entries, time: float) -> str:
    """The kind of the entry of `status` that holds at a time."""
    return next((kind for when, kind, _ in reversed(entries) if when <= time), "")
