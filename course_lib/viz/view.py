"""Live views: the widget, its text form, and the static picture that stands in for it.

A view puts two outputs under its cell: first the static picture (an image inside text/html), then
the widget. Where the widget lives, the picture hides; where it cannot, the picture is what people
see:

- a fresh clone (untrusted): JupyterLab shows the image and the widget's text form;
- a trusted notebook, reopened without running it: the style beside the image keeps the second
  output hidden until a live widget is in it, so no "model not found" appears;
- an export without a kernel: the image and the text form.
"""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets
from IPython.display import display

from . import page
from .static import Picture, image

FOLDER = Path(__file__).parent
STYLE = ("<style>"
         ".jp-OutputArea-child:has(.lockstep-still):has(+ .jp-OutputArea-child .lockstep-live),"
         ".jp-OutputArea-child:has(.lockstep-still) + "
         ".jp-OutputArea-child:not(:has(.lockstep-live)){display:none}</style>")


def engine(*names: str, plays: str = "") -> str:
    """The ESM source of an engine: its files, one after the other.

    plays: the JavaScript expression that makes the picture of `data`; the player is started on it.
    """
    files = [(FOLDER / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(files + ([f"export default playing((data) => {plays});\n"] if plays else []))


def show_pair(widget, still: str) -> None:
    """Display the static picture, then the widget that takes its place."""
    display({"text/html": STYLE + still, "text/plain": repr(widget)}, raw=True)
    bundle = widget._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    display({**bundle, "text/plain": repr(widget)}, raw=True)


class View(anywidget.AnyWidget):
    """A timeline that plays. `step` follows the player on the page; setting it moves the player.

    data: what the engine plays, sent once (format: rows.js).
    step: steps that have happened, 0 to `last`. error: a line that the page shows in red. stale:
    the picture is older than what the controls say, because of that error.
    """

    _esm = engine("player.js", "draw.js", "rows.js", plays="new Rows(data)")
    _css = engine("viz.css")
    data = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)

    @property
    def last(self) -> int:
        """Number of the last step."""
        return len(self.data["steps"]) - 1

    @traitlets.validate("step")
    def _in_range(self, proposal):
        if not 0 <= proposal["value"] <= self.last:
            raise traitlets.TraitError(f"step={proposal['value']}: must be in 0..{self.last}")
        return proposal["value"]

    def replace(self, data: dict) -> None:
        """Show other data in place, from its start; the page gets one message."""
        with self.hold_sync():
            self.step = 0
            self.data = data | {"id": self.data["id"]}
            self.error, self.stale = "", False

    def still(self) -> str:
        """The static picture, as SVG."""
        return Picture(self.data).svg()

    def save_html(self, path) -> None:
        """Write a page that plays this view without a kernel and without a network."""
        state = {"data": self.data, "step": 0, "error": self.error}
        page.write(path, self.data["title"], str(self._esm), str(self._css), state)

    def __repr__(self) -> str:
        return f"{self.data['summary']}, step {self.step} of {self.last}"

    def _ipython_display_(self) -> None:
        show_pair(self, image(self.still(), self.data["summary"], self.data["id"]))


def reporting(view, callback):
    """`callback` for `observe`: an exception in it becomes the red line of the view."""

    def guarded(change):
        view.error = ""
        try:
            callback(change)
        except Exception as error:  # noqa: BLE001  whatever a control runs into, people must see it
            view.error, view.stale = f"{type(error).__name__}: {error}", True

    return guarded
