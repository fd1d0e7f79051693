"""The controls of the pipeline explorer: a few in sight, the others behind "More"."""

from __future__ import annotations

import ipywidgets

NARROW, WIDE = {"width": "220px"}, {"width": "300px"}
LABEL = {"description_width": "115px"}  # the longest description is not cut off


class Controls:
    """The controls by name; `controls["p"]` is the value of one, `ms` the same in seconds."""

    def __init__(self, names: list[str], nothing: str, places: list[str], values: dict) -> None:
        self.all = {
            "schedule": _choice("schedule", names, values),
            "p": _slider("p", "p ranks", 1, 8, values),
            "m": _slider("m", "m micro-batches", 1, 32, values),
            "compare": _choice("compare", [nothing, *names], values),
            "F": _number("F", "F, ms", values, 0.001),
            "I": _number("I", "I, ms", values, 0.001),
            "W": _number("W", "W, ms", values, 0.001),
            "pair": _number("pair", "F&B, ms (0: sum)", values),
            "latency": _number("latency", "transfer, ms", values),
            "v": _slider("v", "v stages", 1, 4, values),
            "machine": _choice("machine", places, values),
            "message": _number("message", "message, MiB", values),
            "barrier": ipywidgets.Checkbox(values["barrier"], description="barrier at the end",
                                           indent=False, layout=NARROW),
            "cap": _number("cap", "cap (0: none)", values),
            "kept": ipywidgets.FloatSlider(values["kept"], min=0, max=1, step=0.05,
                                           description="kept for W", continuous_update=False,
                                           layout=WIDE, style=LABEL),
        }

    def __getitem__(self, name: str):
        return self.all[name].value

    def ms(self, name: str) -> float:
        """The seconds that a control in milliseconds says."""
        return self[name] * 1e-3

    def boxes(self, visible: tuple[str, ...]) -> list:
        """The visible controls in a row, and a fold with the others."""
        for name in visible:
            if name not in self.all:
                raise ValueError(f"controls={visible}: {name!r} is none of {', '.join(self.all)}")
        row = {"flex_flow": "row wrap"}
        fold = ipywidgets.Accordion([ipywidgets.HBox(
            [control for name, control in self.all.items() if name not in visible], layout=row)])
        fold.set_title(0, "More")
        return [ipywidgets.HBox([self.all[name] for name in visible], layout=row), fold]


def _choice(name: str, options: list[str], values: dict):
    return ipywidgets.Dropdown(options=options, value=values[name], description=name, layout=WIDE,
                               style=LABEL)


def _slider(name: str, description: str, low: int, high: int, values: dict):
    return ipywidgets.IntSlider(values[name], low, high, description=description,
                                continuous_update=False, layout=WIDE, style=LABEL)


def _number(name: str, description: str, values: dict, low: float = 0.0):
    return ipywidgets.BoundedFloatText(values[name], min=low, max=10_000.0, step=0.1,
                                       description=description, layout=NARROW,
                                       style=LABEL)
