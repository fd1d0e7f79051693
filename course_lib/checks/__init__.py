"""One check per task: `check_<task>(fn)` runs the learner's function in real ranks and returns a
Report.

Under nbgrader a check shares the student's kernel, which can be tampered with; for an exam use
`python -m course_lib.grade`, where learners' code runs only inside rank processes.
"""

# The tasks register in the order of the course.
# isort: off
from .machinery import TASKS
from .report import Report
from .setup import check_setup
from .start_anyone import check_anyone
from .start import check_exchange_with_neighbour
from .start_step import check_data_parallel_step
from .collectives import check_ring_reduce_scatter, check_tree_broadcast
from .collectives_gather import check_ring_all_gather
from .collectives_all_reduce import check_all_reduce
from .collectives_all_to_all import check_all_to_all
from .collectives_fast import check_fast_broadcast
from .machines import check_fit_ping_pong
from .machines_torus import check_link_loads
from .machines_bus import check_bus_bandwidths
from .all_reduces import check_halving_doubling
from .all_reduces_levels import check_hierarchical
from .all_reduces_crossover import check_crossover
from .all_reduces_choice import check_choose
from .servers import check_server_step
from .servers_bounded import check_bounded_server
from .data_parallels import check_token_step
from .data_parallels_overlap import check_reduce_in_buckets
from .data_parallels_parts import check_accumulated_step
from .zero_memory import check_state_bytes
from .zero_one import check_zero1
from .zero_two import check_reduce_in_backward
from .zero_units import check_unshard
from .zero_three import check_zero3_step
from .batch_sizes import check_noise_scale
from .batch_sizes_clip import check_clip_shards
from .pipelines import check_bubbles
from .pipelines_order import check_gpipe_order, check_one_f_one_b_order
from .pipelines_stage import check_repaired_step, check_run_stage
from .zero_bubble import check_interleaved_order
from .zero_bubble_split import check_deferred_linear
from .zero_bubble_h1 import check_zb_h1_order
from .zero_bubble_beat import check_beat
# isort: on

__all__ = [
    "TASKS",
    "Report",
    "check_accumulated_step",
    "check_all_reduce",
    "check_all_to_all",
    "check_anyone",
    "check_beat",
    "check_bounded_server",
    "check_bubbles",
    "check_bus_bandwidths",
    "check_choose",
    "check_clip_shards",
    "check_crossover",
    "check_data_parallel_step",
    "check_deferred_linear",
    "check_exchange_with_neighbour",
    "check_fast_broadcast",
    "check_fit_ping_pong",
    "check_gpipe_order",
    "check_halving_doubling",
    "check_hierarchical",
    "check_interleaved_order",
    "check_link_loads",
    "check_noise_scale",
    "check_one_f_one_b_order",
    "check_reduce_in_backward",
    "check_reduce_in_buckets",
    "check_repaired_step",
    "check_ring_all_gather",
    "check_ring_reduce_scatter",
    "check_run_stage",
    "check_server_step",
    "check_setup",
    "check_state_bytes",
    "check_token_step",
    "check_tree_broadcast",
    "check_unshard",
    "check_zb_h1_order",
    "check_zero1",
    "check_zero3_step",
]
