"""`explore_collectives()`: every collective in one view, with its op, ranks, size and root."""

from __future__ import annotations

import ipywidgets
import torch

from .. import collectives
from ..dry import dry_run
from .cells_view import CellsView
from .collective import collective_data
from .excerpt import one_call
from .show import timeline_of
from .static import image
from .view import reporting, show_pair

LISTS = ("scatter", "reduce_scatter", "ring_reduce_scatter", "all_to_all", "pairwise_all_to_all")
ROOTED = ("broadcast", "tree_broadcast", "scatter", "gather", "reduce", "tree_reduce")
OPS = (*ROOTED, "all_gather", "reduce_scatter", "all_to_all", "naive_all_reduce", "ring_all_reduce",
       "tree_all_reduce", "recursive_doubling_all_reduce", "rabenseifner_all_reduce",
       "torus_all_reduce")
MOST_RANKS, MOST_ELEMENTS = 8, 64


def collective_run(group, op: str, size: int, root: int):
    """Call the collective on `size` elements of float32; where it takes parts, on one per rank."""
    x = torch.zeros(size)
    parts = list(x.tensor_split(group.size)) if op in LISTS else x
    if op == "scatter" and group.rank != root:
        parts = None
    return getattr(collectives, op)(parts, group, **({"root": root} if op in ROOTED else {}))


class CollectiveExplorer(ipywidgets.VBox):
    """The controls above one view; each change runs the collective again (a dry run), in place."""

    def __init__(self, op: str, ranks: int, size: int, root: int, machine=None):
        self.machine = machine
        number = dict(continuous_update=False, layout={"width": "270px"})
        self.op = ipywidgets.Dropdown(options=_options(op), value=op, description="op")
        self.ranks = ipywidgets.IntSlider(ranks, 1, MOST_RANKS, description="W ranks", **number)
        self.size = ipywidgets.IntSlider(size, 1, MOST_ELEMENTS, description="n elements", **number)
        self.root = ipywidgets.IntSlider(root, 0, ranks - 1, description="root", **number)
        self.view = CellsView(data=self._data())
        self._root_shown()
        for control in (self.op, self.ranks, self.size, self.root):
            control.observe(reporting(self.view, self.update), "value")
        controls = ipywidgets.HBox([self.op, self.ranks, self.size, self.root],
                                   layout={"flex_flow": "row wrap"})
        super().__init__([controls, self.view])

    def _data(self) -> dict:
        op, ranks, size = self.op.value, self.ranks.value, self.size.value
        root = self.root.value if op in ROOTED else 0
        trace = one_call(dry_run(collective_run, ranks, op, size, root), 0)
        whole = f"{op} of {size} element{'s' * (size > 1)} on {ranks} rank{'s' * (ranks > 1)}"
        title = whole + (f", root {root}" if op in ROOTED else "")
        return collective_data(timeline_of(trace, self.machine), title)

    def _root_shown(self) -> None:
        self.root.layout.display = "" if self.op.value in ROOTED else "none"

    def update(self, change=None) -> None:
        """Run what the controls say and show it."""
        if change is not None and change["owner"] is self.ranks:
            kept = min(self.root.value, self.ranks.value - 1)
            if kept != self.root.value:  # lowering the root runs everything by itself
                self.root.value = kept
                self.root.max = self.ranks.value - 1
                return
            self.root.max = self.ranks.value - 1
        self._root_shown()
        self.view.replace(self._data())

    def __repr__(self) -> str:
        return f"{self.view.data['summary']}; controls: op, ranks, size, root"

    def _ipython_display_(self) -> None:
        data = self.view.data
        show_pair(self, image(self.view.still(), data["summary"], data["id"]))


def explore_collectives(op: str = "ring_all_reduce", ranks: int = 4, size: int = 8, root: int = 0,
                        machine=None) -> CollectiveExplorer:
    """Every collective, played: who holds what, bytes so far, the timeline.

    op: a name of course_lib.collectives. ranks: 1 to 8. size: elements (float32) of x, or of all
    parts together. root: where the collective has one. machine: default one second per message.
    """
    _options(op)
    _whole("ranks", ranks, 1, MOST_RANKS)
    _whole("size", size, 1, MOST_ELEMENTS)
    _whole("root", root, 0, ranks - 1)
    return CollectiveExplorer(op, ranks, size, root, machine)


def _whole(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name}={value!r}: must be a whole number in {low}..{high}")


def _options(op: str) -> tuple[str, ...]:
    """The choices of the op control, the one asked for among them."""
    if op in OPS:
        return OPS
    if op in collectives.__all__ and op not in ("barrier", "hierarchical_all_reduce"):
        return (*OPS, op)
    raise ValueError(f"op={op!r}: must be one of {', '.join(OPS)}")
