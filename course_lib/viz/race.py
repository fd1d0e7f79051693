"""`race_all_reduce()`: all-reduces against each other, on a machine that the learner picks."""

from __future__ import annotations

from html import escape

import ipywidgets

from .racers import ALGORITHMS, MACHINES, RACERS, raced
from .rows import bytes_text, clock, document, time_text
from .static import image
from .theme import colour
from .timeline_view import timeline_data
from .view import View, reporting, show_pair

ALL = "all four"
RANKS = (4, 8, 16)
SIZES = tuple(4**k * 1024 for k in range(1, 10))  # 4 KiB to 256 MiB
ROWS_EACH = 4  # ranks of each algorithm that get rows in a race; one alone shows all


class Race(ipywidgets.VBox):
    """Four controls, the timelines of what they name, and the load of the busiest links."""

    def __init__(self, algorithm: str, machine: str, ranks: int, size: int):
        sizes = [(bytes_text(n), n) for n in sorted({*SIZES, size})]
        self.algorithm, self.machine, self.ranks, self.size = (
            ipywidgets.Dropdown(options=options, value=value, description=name,
                                layout={"width": "215px"})
            for name, options, value in (
                ("algorithm", (ALL, *ALGORITHMS), algorithm), ("machine", list(MACHINES), machine),
                ("W ranks", RANKS, ranks), ("n bytes", sizes, size)))
        self.load = ipywidgets.HTML()
        self.view = View(data=self._data())
        self.load.value = self.loads()
        controls = (self.algorithm, self.machine, self.ranks, self.size)
        for control in controls:
            control.observe(reporting(self.view, self.update), "value")
        super().__init__([ipywidgets.HBox(controls, layout={"flex_flow": "row wrap"}), self.view,
                          self.load])

    def timelines(self) -> dict:
        """The Timeline of each algorithm that the controls name."""
        names = RACERS if self.algorithm.value == ALL else (self.algorithm.value,)
        place = self.machine.value, self.ranks.value, self.size.value
        return {name: raced(name, *place) for name in names}

    def update(self, _change=None) -> None:
        """Race as the controls say now: one message for the view, one for the loads."""
        self.view.replace(self._data())
        self.load.value = self.loads()

    def _data(self) -> dict:
        timelines, panels, steps = self.timelines(), [], []
        rows = range(min(self.ranks.value, ROWS_EACH if len(timelines) > 1 else max(RANKS)))
        end = max(timeline.makespan for timeline in timelines.values())
        for name, timeline in timelines.items():
            data, takes = timeline_data(timeline, rows), time_text(timeline.makespan, clock(end))
            steps += [[time, f"{name}: {text}", len(panels), bars, arrows]
                      for time, text, _, bars, arrows in data["steps"][1:-1]]
            panels.append(data["panels"][0] | {"title": f"{name}: {takes}"})
        some = f" (ranks 0 to {len(rows) - 1} shown)" if len(rows) < self.ranks.value else ""
        title = (f"all-reduce of {bytes_text(self.size.value)} on {self.ranks.value} ranks, "
                 f"{self.machine.value}{some}")
        times = ", ".join(panel["title"].replace(":", "") for panel in panels)
        return document(title, f"{title}: {times}", end, panels, steps)

    def busiest(self) -> list[tuple[str, str, int, float]]:
        """(algorithm, link, bytes, busy share of the makespan): the busiest one of each
        algorithm in a race, the six busiest of one alone.
        """
        found, timelines = [], self.timelines()
        for name, timeline in timelines.items():
            links = sorted(timeline.link_seconds, key=lambda link: -timeline.link_seconds[link])
            found += [(name, link, timeline.link_bytes[link],
                       timeline.link_seconds[link] / timeline.makespan)
                      for link in links[:1 if len(timelines) > 1 else 6]]
        return found

    def loads(self) -> str:
        """The loads of the busiest links as HTML: a bar is the share of time that one is busy."""
        bar = "display:inline-block;height:10px;background:"
        rows = "".join(
            f"<tr><td>{name}</td><td>{escape(link)}</td><td style='text-align:right'>"
            f"{bytes_text(nbytes)}</td><td style='text-align:left;width:240px'><span style='{bar}"
            f"{colour('send')};width:{busy * 160:.0f}px'></span> {busy:.0%}</td></tr>"
            for name, link, nbytes, busy in self.busiest())
        return ("<table style='color:#7a7a7a'><tr><th>algorithm</th><th>busiest link</th>"
                f"<th>carries</th><th>busy</th></tr>{rows}</table>")

    def __repr__(self) -> str:
        links = "; ".join(f"{name}: {link} carries {bytes_text(nbytes)}, busy {busy:.0%}"
                          for name, link, nbytes, busy in self.busiest())
        return f"{self.view.data['summary']}. Busiest links: {links}"

    def _ipython_display_(self) -> None:
        data = self.view.data
        show_pair(self, image(self.view.still(), data["summary"], data["id"]) + self.loads())


def race_all_reduce(algorithm: str = ALL, machine: str = "DGX H100", ranks: int = 16,
                    size: int = 2**20) -> Race:
    """All-reduces on one clock, with controls for algorithm, machine, ranks and size.

    algorithm: "all four", a name of ALGORITHMS. machine: a key of
    MACHINES. ranks: 4, 8 or 16. size: bytes, at least 4 a rank. ValueError for anything else.
    """
    for name, value, choices in (("algorithm", algorithm, (ALL, *ALGORITHMS)),
                                 ("machine", machine, tuple(MACHINES)), ("ranks", ranks, RANKS)):
        if value not in choices:
            raise ValueError(f"{name}={value!r}: must be one of {', '.join(map(str, choices))}")
    if not isinstance(size, int) or size < 4 * ranks:
        raise ValueError(f"size={size!r}: must be at least {4 * ranks} bytes, an element a rank")
    return Race(algorithm, machine, ranks, size)
