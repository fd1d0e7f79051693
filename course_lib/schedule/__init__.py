"""Pipeline schedules as data: build, validate, time. One list of Op per rank.

>>> print(*one_f_one_b(4, 8)[2][:5])
2F0 2F1 2B0 2F2 2B1
>>> time_schedule(one_f_one_b(4, 8)).bubble_ratio      # (p-1)/m
0.375

====================================================== =========================================
naive gpipe one_f_one_b interleaved_1f1b looped_bfs    builders.py
zb_h1 zb_h2 interleaved_zb                             builders.py
zb_v dualpipe dualpipe_v                               two_way.py
Op needs output Schedule Placement and its four makers ops.py
validate problem IllegalSchedule                       legal.py
programs lower Action                                  programs.py: what each rank does, as events
time_schedule PipelineTimeline                         timing.py
bubble_seconds peak_micro_batches                      forms.py: closed forms
====================================================== =========================================
"""

from .builders import (
    gpipe,
    interleaved_1f1b,
    interleaved_zb,
    looped_bfs,
    naive,
    one_f_one_b,
    zb_h1,
    zb_h2,
)
from .forms import bubble_seconds, peak_micro_batches
from .legal import IllegalSchedule, problem, validate
from .ops import (
    Op,
    Placement,
    Schedule,
    as_schedule,
    bidirectional,
    interleaved,
    linear,
    needs,
    output,
    v_shape,
)
from .programs import Action, lower, programs, step_label
from .timing import PipelineTimeline, time_schedule
from .two_way import dualpipe, dualpipe_v, zb_v

__all__ = ["Action", "IllegalSchedule", "Op", "PipelineTimeline", "Placement", "Schedule",
           "as_schedule", "bidirectional", "bubble_seconds", "dualpipe", "dualpipe_v", "gpipe",
           "interleaved", "interleaved_1f1b", "interleaved_zb", "linear", "looped_bfs", "lower",
           "naive", "needs", "one_f_one_b", "output", "peak_micro_batches", "problem", "programs",
           "step_label", "time_schedule", "v_shape", "validate", "zb_h1", "zb_h2", "zb_v"]
