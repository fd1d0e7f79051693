"""One theme for every picture: a colour, a letter and a hatch per meaning, and plotly's settings.

The colours are Okabe and Ito's set (and two lighter tones of it), which stays distinct for
colour-blind readers. No meaning rests on colour alone: bars carry their letter, areas their hatch.
Text is mid-grey, legible on the light and on the dark theme.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

DARK, WHITE = "#1b1b1b", "#ffffff"
TEXT = "#7a7a7a"  # mid-grey: 4.3 : 1 on white, 4.4 : 1 on JupyterLab's dark background
FAINT = "rgba(128,128,128,0.16)"  # tracks and grid lines, on any background
STRONG = "#d55e00"  # the clock line, a wait-for cycle, an error
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

# Hatches are paths on an 8 x 8 tile.
SLASH = "M-2 2L2 -2M-2 10L10 -2M6 10L10 6"
BACKSLASH = "M-2 6L2 10M-2 -2L10 10M6 -2L10 2"
CROSS = SLASH + BACKSLASH
DOTS = "M1 2h2M5 6h2"
LINES = "M0 2h8M0 6h8"


@dataclass(frozen=True)
class Meaning:
    """How a meaning is drawn. `ink` is the colour of text on it, `hatch` a path on a tile."""

    name: str
    colour: str
    ink: str = DARK
    letter: str = ""
    hatch: str = ""
    stroke: str = "rgba(255,255,255,0.6)"


OPS = {
    "compute": Meaning("compute", "#56b4e9", letter="C"),
    "F": Meaning("F forward", "#0072b2", WHITE, "F"),
    "B": Meaning("B backward", "#009e73", letter="B"),
    "I": Meaning("I input gradient (papers: B)", "#7fd1b9", letter="I"),
    "W": Meaning("W weight gradient", "#f0e442", letter="W"),
    "send": Meaning("send", "#e69f00", letter="S"),
    "recv": Meaning("receive", "#f7cf7a", letter="R"),
    "wait": Meaning("wait", "rgba(128,128,128,0.14)", TEXT, "…", SLASH, "rgba(128,128,128,0.55)"),
    "idle": Meaning("idle", FAINT, TEXT),
    "bubble": Meaning("idle: the bubble", "rgba(128,128,128,0.14)", TEXT, "", SLASH,
                      "rgba(128,128,128,0.55)"),
    "outside": Meaning("idle, outside the rank's own span", "rgba(128,128,128,0.08)", TEXT, "",
                       DOTS, "rgba(128,128,128,0.5)"),
}
STATES = {
    "parameter": Meaning("parameters", "#0072b2", WHITE),
    "gradient": Meaning("gradients", "#009e73", hatch=SLASH),
    "optimizer": Meaning("optimizer state", "#cc79a7", hatch=CROSS),
    "activation": Meaning("activations", "#56b4e9", hatch=DOTS),
    "buffer": Meaning("communication buffers", "#e69f00", hatch=LINES),
    "other": Meaning("other", "#9a9a9a"),
}
CELLS = {
    "part": Meaning("numbers of the rank named", "#56b4e9"),
    "whole": Meaning("the sum over all ranks", "#0072b2", WHITE, "Σ"),
    "mixed": Meaning("added twice, or elements that do not belong together", STRONG, hatch=CROSS),
}
MEANINGS = OPS | STATES | CELLS

# Sizes in pixels that the live engine and the static picture share.
LOOK = {"row": 30, "gap": 14, "title": 28, "axis": 24, "strip": 36, "pad": 10, "text": 12}


def legend(kinds) -> dict[str, dict]:
    """The meanings among `kinds`, in the theme's order, as plain data for a page."""
    return {kind: asdict(meaning) for kind, meaning in MEANINGS.items() if kind in kinds}


def colour(kind: str) -> str:
    """The colour of a meaning, as CSS text."""
    if kind not in MEANINGS:
        raise ValueError(f"kind={kind!r}: must be one of {', '.join(MEANINGS)}")
    return MEANINGS[kind].colour


def style(figure):
    """Give a plotly figure the course's look: no template, no paper, mid-grey text. Returns it."""
    axis = {"gridcolor": FAINT, "zerolinecolor": FAINT, "linecolor": TEXT, "ticks": "outside",
            "tickcolor": TEXT, "automargin": True}
    return figure.update_layout(
        template="none", paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        font={"color": TEXT, "family": FONT, "size": 13}, xaxis=axis, yaxis=axis,
        colorway=["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"],
        margin={"l": 60, "r": 20, "t": 40, "b": 50}, legend={"bgcolor": "rgba(0,0,0,0)"})
