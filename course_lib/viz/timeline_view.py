"""Timeline -> the data of the "rows over time" engine: one row per rank and stream, no physics."""

from __future__ import annotations

from ..trace import MAIN
from .rows import bytes_text, clock, count_text, document, place, time_text
from .wire import Wire


def timeline_data(timeline, ranks=None) -> dict:
    """The engine's data for a Timeline. `ranks` (default: all) are the ranks that get rows."""
    chosen = sorted(set(range(timeline.world_size) if ranks is None else ranks))
    if not chosen or chosen[0] < 0 or chosen[-1] >= timeline.world_size:
        raise ValueError(f"ranks={chosen}: must be ranks of 0..{timeline.world_size - 1}")
    keys = {(rank, MAIN) for rank in chosen} | {k for k in timeline.finished if k[0] in chosen}
    order = sorted(keys, key=lambda key: (key[0], key[1] != MAIN, key[1]))
    rows = {key: i for i, key in enumerate(order)}
    wire, messages = Wire(timeline), []
    for span in sorted(timeline.spans, key=lambda s: (s.start, s.rank)):
        if (span.rank, span.stream) in rows:
            wire.add(span, rows[span.rank, span.stream])
    for number, m in enumerate(timeline.messages):
        ends = [rows.get((m.src, m.src_stream)), rows.get((m.dst, m.dst_stream))]
        if ends == [None, None]:
            continue
        arrow = [] if None in ends else [len(messages)]
        if arrow:
            messages.append([*ends, m.start, m.end])
        text = f"rank {m.src} sends {bytes_text(m.nbytes)} to rank {m.dst}{place(m.send)}"
        wire.steps.append([m.start, text, 0, wire.bars_of.get(number, []), arrow])
    names = [f"rank {rank}" + (f" · {name}" if name != MAIN else "") for rank, name in order]
    panel = {"title": "", "rows": names, "bars": wire.bars, "messages": messages,
             "strips": list(_strips(timeline, rows))}
    title = f"{count_text(timeline.world_size, 'rank')} on {timeline.machine}"
    summary = (f"Timeline of {title}: {count_text(len(timeline.messages), 'message')}, "
               f"makespan {time_text(timeline.makespan, clock(timeline.makespan))}")
    return document(title, summary, timeline.makespan, [panel], wire.steps)


def _strips(timeline, rows):
    """What each rank holds over time, in bytes, under the row of its main stream."""
    for (rank, stream), row in rows.items():
        after = {t: held for t, held in timeline.memory(rank)}  # the last change of an instant
        if stream == MAIN and after:
            yield {"row": row, "name": "memory", "unit": "B", "series": [
                [t, {kind: n for kind, n in held.items() if n}] for t, held in after.items()]}
