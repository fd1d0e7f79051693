"""What a rank does in each of its spans: it computes, it has a message on the wire, or it waits.

A span of kind send, recv or wait covers both the wait for the peer (or for a port) and the
transfer. The messages of the Timeline say which part is which.
"""

from __future__ import annotations

import re

from .rows import place


class Wire:
    """Collects bars and steps, span by span. `bars_of[number]` are the bars of a message."""

    def __init__(self, timeline):
        self.bars, self.steps, self.bars_of, self._parts = [], [], {}, {}
        for number, m in enumerate(timeline.messages):
            for side, rank, event in (("send", m.src, m.send), ("recv", m.dst, m.recv)):
                # A blocking call is found by its event, a wait by the requests it names.
                for key in (id(event), *((rank, request) for request in event.requests)):
                    self._parts.setdefault(key, []).append((m.start, m.end, side, number, m))

    def add(self, span, row: int) -> None:
        """The bars and steps of one span."""
        if span.kind == "compute":
            self._compute(span, row)
        elif span.kind == "await":
            other = span.event.event or "another stream"
            self._bar(span, row, span.start, span.end, "wait", "wait",
                      f"rank {span.rank} ({span.stream}) waits for {other}")
        else:
            self._blocking(span, row)

    def _compute(self, span, row):
        label = span.label or "compute"
        op = re.fullmatch(r"\d*([FBIW])\d+", label)  # F0, or 2F0 with its stage
        kind = op[1] if op else {"forward": "F", "backward": "B"}.get(label, "compute")
        work = f", {span.event.flops:,} FLOPs" if span.event.flops else ""
        self._bar(span, row, span.start, span.end, kind, label,
                  f"rank {span.rank} computes {label}{work}")

    def _bar(self, span, row, start, end, kind, label, sentence):
        number = [len(self.bars)] if end > start else []
        self.steps.append([start, sentence + place(span.event), 0, number, []])
        if number:
            self.bars.append([row, start, end, kind, label, 0])

    def _blocking(self, span, row):
        keys = [(span.rank, request) for request in span.event.requests]
        parts = [p for key in (keys if span.kind == "wait" else [id(span.event)])
                 for p in self._parts.get(key, ())]
        clipped = [(max(span.start, p[0]), min(span.end, p[1]), *p[2:]) for p in parts]
        wire = sorted((p for p in clipped if p[1] > p[0]), key=lambda p: p[:4])
        halves = {"send": 1, "recv": 2} if len({p[2] for p in wire}) == 2 else {}
        reach = span.start
        for start, end, side, number, m in wire:
            if start > reach:
                self._wait(span, row, reach, start, parts)
            reach = max(reach, end)
            self.bars_of.setdefault(number, []).append(len(self.bars))
            label = f"→ {m.dst}" if side == "send" else f"← {m.src}"
            self.bars.append([row, start, end, side, label, halves.get(side, 0)])
        if span.end > reach:
            self._wait(span, row, reach, span.end, parts)

    def _wait(self, span, row, start, end, parts):
        peers = {m.dst if side == "send" else m.src
                 for _, over, side, _, m in parts if over > start}
        names = ", ".join(f"rank {peer}" for peer in sorted(peers)) or "its messages"
        label = "for " + ", ".join(map(str, sorted(peers))) if peers else "wait"
        self._bar(span, row, start, end, "wait", label, f"rank {span.rank} waits for {names}")
