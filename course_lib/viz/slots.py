"""Which slot of a picture a piece of a rank's memory is shown in, and what the slot shows when.

The lanes are memory as the trace describes it: what the call was given, cut wherever a message cuts
it, and what it returned, where that is other memory. A scratch buffer is shown in the slot of the
elements that it holds, as long as somebody will read it: a slot shows the fullest sum that the rank
holds of its elements.
"""

from __future__ import annotations

import math

from .cells import Cell, Lane
from .flow import Flow, Piece


class Slots:
    """The lanes and slots of a Flow, and the cells that they show."""

    def __init__(self, flow: Flow):
        self.flow, self.ranks = flow, range(flow.timeline.world_size)
        longest = max(flow.given.values(), key=lambda parts: sum(p[2] for p in parts), default=[])
        cuts = {0}
        for _, _, elements in longest:
            cuts.add(max(cuts) + elements)
        self.tensors = sorted(cuts)
        for flight in flow.flights:
            for elements, holds in flight.pieces:
                cuts |= {holds[0][1], holds[0][1] + elements}
        edges = sorted(cuts)
        self.segments = list(zip(edges, edges[1:]))
        # A program without a collective call that adds nothing: by whose elements they are
        self.by_rank = not flow.op and not flow.adds
        own = {rank: {part[0] for part in parts} for rank, parts in flow.given.items()}
        self.apart = {rank: [part for part in parts if part[0] not in own.get(rank, ())]
                      for rank, parts in flow.returned.items()}
        self.results = max(map(len, self.apart.values()), default=0)
        self.first_result = len(self.segments) * (len(self.ranks) if self.by_rank else 1)

    def lanes(self) -> list[Lane]:
        """What was given, and what was returned if that is other memory."""
        sizes = [end - start for start, end in self.segments]
        if self.by_rank:
            names = [f"from {rank}" + (f" [{i}]" if len(sizes) > 1 else "")
                     for rank in self.ranks for i in range(len(sizes))]
            return [Lane("", tuple(names), tuple(sizes * len(self.ranks)))]
        if len(self.tensors) == len(sizes) + 1 > 2:
            names = [f"part {i}" for i in range(len(sizes))]
        else:
            names = [f"chunk {i}" for i in range(len(sizes))] if len(sizes) > 1 else ["x"]
            names = names[:len(sizes)]
        lanes = [Lane("given" if self.results else "", tuple(names), tuple(sizes))]
        if self.results:
            rows = [f"from {i}" for i in range(self.results)] if self.results > 1 else ["result"]
            sizes = [max((parts[i][2] for parts in self.apart.values() if i < len(parts)),
                         default=1) for i in range(self.results)]
            lanes.append(Lane("returned", tuple(rows), tuple(sizes)))
        return lanes

    def of(self, piece: Piece) -> list[tuple[int, bool, Piece]]:
        """(slot, whether it is the slot's own memory, the elements of the piece shown in it)."""
        for i, (buffer, start, elements) in enumerate(self.apart.get(piece.rank, ())):
            if buffer == piece.buffer and start < piece.end and piece.offset < start + elements:
                return [(self.first_result + i, True, piece.between(start, start + elements))]
        base, element, home = 0, piece.holds[0][1], False
        for buffer, start, elements in self.flow.given.get(piece.rank, ()):
            if buffer == piece.buffer and start <= piece.offset < start + elements:
                element, home = base + piece.offset - start, not self.by_rank
            base += elements
        block = piece.holds[0][0] * len(self.segments) if self.by_rank else 0
        found = []
        for i, (low, high) in enumerate(self.segments):
            low, high = max(low, element), min(high, element + piece.elements)
            if low < high:
                at = piece.offset - element
                found.append((block + i, home, piece.between(low + at, high + at)))
        return found

    def cell(self, holds) -> Cell:
        """How contributions look."""
        ranks = tuple(sorted({rank for rank, _ in holds}))
        if not self.flow.adds:
            return Cell(self._origin(*holds[0]))
        if len(ranks) < len(holds):
            twice = next(r for r in ranks if [rank for rank, _ in holds].count(r) > 1)
            return Cell(f"{twice} twice", "mixed", len(self.ranks), ranks)
        if len({element for _, element in holds}) > 1:
            return Cell("mixed", "mixed", len(self.ranks), ranks)
        whole = len(ranks) == len(self.ranks)
        return Cell("", "whole" if whole else "part", len(self.ranks), ranks)

    def _origin(self, rank: int, element: int) -> str:
        """"2" for the x of rank 2; "2 → 0" for its part 0; "2 · 1" for its chunk 1."""
        if len(self.segments) < 2:
            return str(rank)
        index = next((i for i, (a, b) in enumerate(self.segments) if a <= element < b), 0)
        return f"{rank} → {index}" if len(self.tensors) > 2 else f"{rank} · {index}"

    def words(self, flight) -> str:
        """What a message carries, for people: "chunk 2 (3 of 4 added)", "part 0 of rank 1"."""
        ways, names = self.ways(flight), [name for lane in self.lanes() for name in lane.slots]
        if not ways:
            return "nothing"
        (slot, _, holds, _), last = ways[0], ways[-1]
        if not self.flow.adds:
            rank, element = holds[0]
            index = next((i for i, (a, b) in enumerate(self.segments) if a <= element < b), 0)
            return (f"{names[index]} of rank {rank}" if not self.by_rank else
                    names[slot].replace("from", "the numbers of rank"))
        what = names[slot] if len(ways) == 1 else f"{names[slot]} to {names[last[0]]}"
        count = len(holds)
        if count == 1:
            return f"its {what}"
        return (f"the complete {what}" if count == len(self.ranks) else
                f"{what} ({count} of {len(self.ranks)} added)")

    def history(self) -> dict[tuple[int, int], list[tuple[float, Cell | None]]]:
        """(time, cell) of every spot (rank, slot), each change once."""
        seen: dict[tuple[int, int], list[tuple]] = {}
        for piece in self.flow.pieces:
            for slot, home, part in self.of(piece):
                until = part.until if home or self.by_rank else min(part.until, part.used)
                if until > part.since:
                    seen.setdefault((piece.rank, slot), []).append(
                        (part.since, until, home, part.holds))
        return {spot: list(self._fullest(items)) for spot, items in sorted(seen.items())}

    def _fullest(self, items):
        """The cell with most contributions that is alive, at every time at which it changes."""
        shown = None
        for time in sorted({t for item in items for t in item[:2] if t < math.inf}):
            alive = [item for item in items if item[0] <= time < item[1]]
            best = max(alive, key=lambda item: (len(item[3]), item[2], item[0]), default=None)
            cell = None if best is None else self.cell(best[3])
            if cell != shown:
                shown = cell
                yield time, cell

    def ways(self, flight):
        """(source slot, target slot, contributions, elements) of every cell of a message."""
        message, sent, found = flight.message, 0, []
        for elements, holds in flight.pieces:
            out = Piece(message.src, flight.source[0], flight.source[1] + sent, elements, holds,
                        message.start)
            into = Piece(message.dst, flight.target[0], flight.target[1] + sent, elements, holds,
                         message.end)
            for slot, _, part in self.of(out):
                skip = part.offset - out.offset
                there = into.between(into.offset + skip, into.offset + skip + part.elements)
                for target, _, arrived in self.of(there):
                    found.append((slot, target, arrived.holds, arrived.elements))
            sent += elements
        return found


