"""Plotly figures that show themselves at once."""

from __future__ import annotations

import json

import plotly.graph_objects as go
from IPython.display import display

PLOTLY = "application/vnd.plotly.v1+json"


class Chart(go.Figure):
    """A figure that hands its own JSON to the page.

    Plotly's renderers do the same, but their first use takes two seconds: it imports nbformat, and
    with it the grammars of everything that a JSON schema may describe.
    """

    def _ipython_display_(self) -> None:
        display({PLOTLY: json.loads(self.to_json())}, raw=True)
