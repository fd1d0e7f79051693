"""Pictures of runs: live views, charts' theme, sources, predictions.

Views draw Timelines and Traces; they contain no physics. Each has a text form that strict tests
compare, and a static picture for readers without a kernel.
"""

from ..launch import errors as _errors
from .predict import predict
from .show import machine_picker, on_failure, show, unit_steps
from .source import show_diff, show_source
from .theme import MEANINGS, colour, style
from .view import View, reporting
from .wait_for import wait_for

__all__ = ["MEANINGS", "View", "colour", "machine_picker", "on_failure", "predict", "reporting",
           "show", "show_diff", "show_source", "style", "unit_steps", "wait_for"]

if on_failure not in _errors.on_failure:  # a failed run shows its picture under the cell
    _errors.on_failure.append(on_failure)
