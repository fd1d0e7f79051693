"""Pictures of runs: live views, charts' theme, sources, predictions.

Views draw Timelines and Traces; they contain no physics. Each has a text form that strict tests
compare, and a static picture for readers without a kernel.
"""

from ..launch import errors as _errors
from .cells import Cell, Lane, Stage, with_cells
from .cells_view import CellsView, bytes_chart, show_collective
from .chart import Chart
from .explore import explore_collectives
from .graph import topology
from .memory import memory_chart
from .pipeline import explore_pipeline
from .pipeline_chart import bubble_chart
from .pipeline_run import show_pipeline
from .predict import predict
from .show import machine_picker, on_failure, show, unit_steps
from .source import show_diff, show_source
from .theme import MEANINGS, colour, style
from .view import View, reporting
from .wait_for import wait_for
from .zero_view import explore_zero, show_zero

__all__ = ["bubble_chart", "bytes_chart", "Cell", "CellsView", "Chart", "colour",
           "explore_collectives", "explore_pipeline", "explore_zero", "Lane", "machine_picker",
           "MEANINGS", "memory_chart", "on_failure", "predict", "reporting", "show",
           "show_collective", "show_diff", "show_pipeline", "show_source", "show_zero", "Stage",
           "style", "topology", "unit_steps", "View", "wait_for", "with_cells"]

if on_failure not in _errors.on_failure:  # a failed run shows its picture under the cell
    _errors.on_failure.append(on_failure)
