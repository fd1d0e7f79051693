"""Closed forms: what a collective or a training state costs, in bytes, steps and seconds. No torch.

n is the size of the vector in bytes, W = `world_size` the number of ranks of the group, `latency`
the seconds per message, `bandwidth` the bytes per second of a port, one way, and `gamma` the
seconds per byte added (a machine's gamma is per element: divide by the bytes of an element). Each
rank has one port per direction. `replay` on such a machine gives the same seconds.

Bytes count payload, sent or received by one rank. They are exact when W divides n; where it does
not, the docstring says which ranks carry more. A form returns a float unless it counts steps.

Sources: [MPICH] header comments of pmodels/mpich, src/mpi/coll; [Thakur] Thakur, Rabenseifner and
Gropp 2005, Optimization of collective communication operations in MPICH; [NT] NVIDIA/nccl-tests,
doc/PERFORMANCE.md; [NCCL] NVIDIA/nccl, src/graph/tuning.cc; [STAS] stas00/ml-engineering,
network/README.md; [SB] jax-ml/scaling-book; [ZeRO] Rajbhandari and others, arXiv 1910.02054,
section 5. A form without one follows from the steps its docstring names. Everything raises
ValueError for a size or rate that makes no sense.

`collectives` holds the simple ones, `all_reduce` its algorithms, `bandwidth` bus bandwidth and
crossover, `training` the state of a model and what ZeRO sends, `overlap` what communication costs
beside computation, `batch` how large a batch helps, `published` forms of collectives that the
course does not run.
"""

from .all_reduce import (
    hierarchical_all_reduce_bytes,
    hierarchical_all_reduce_seconds,
    naive_all_reduce_bytes,
    naive_all_reduce_seconds,
    parameter_server_bytes,
    rabenseifner_all_reduce_seconds,
    rail_rings_all_reduce_seconds,
    recursive_doubling_all_reduce_seconds,
    ring_all_reduce_bytes,
    ring_all_reduce_seconds,
    ring_all_reduce_steps,
    torus_all_reduce_bytes,
    torus_all_reduce_seconds,
    tree_all_reduce_seconds,
)
from .bandwidth import BUS_FACTORS, bus_bandwidth, crossover_bytes
from .batch import examples_needed, noise_scale, steps_needed
from .choice import Choice, choose_all_reduce
from .collectives import (
    all_gather_seconds,
    all_to_all_bytes,
    all_to_all_seconds,
    barrier_seconds,
    barrier_steps,
    broadcast_bytes,
    broadcast_seconds,
    reduce_scatter_seconds,
    torus_all_to_all_bound_seconds,
    tree_broadcast_seconds,
    tree_reduce_seconds,
    tree_steps,
)
from .overlap import ddp_exposed_seconds, hiding_parameters, hiding_tokens, zero3_exposed_seconds
from .published import (
    bruck_all_gather_seconds,
    fat_tree_all_gather_seconds,
    halving_reduce_scatter_seconds,
    nccl_ring_latency_seconds,
    nccl_tree_latency_seconds,
    rabenseifner_reduce_seconds,
    scattered_broadcast_seconds,
    switched_all_to_all_seconds,
    tpu_all_gather_seconds,
    tree_scatter_seconds,
)
from .training import zero_memory_bytes, zero_sent_bytes, zero_state_bytes

__all__ = ["BUS_FACTORS", "Choice", "all_gather_seconds", "all_to_all_bytes", "all_to_all_seconds",
           "barrier_seconds", "barrier_steps", "broadcast_bytes", "broadcast_seconds",
           "bruck_all_gather_seconds", "bus_bandwidth", "choose_all_reduce", "crossover_bytes",
           "ddp_exposed_seconds", "examples_needed", "fat_tree_all_gather_seconds",
           "halving_reduce_scatter_seconds", "hiding_parameters", "hiding_tokens",
           "hierarchical_all_reduce_bytes", "hierarchical_all_reduce_seconds",
           "naive_all_reduce_bytes", "naive_all_reduce_seconds", "nccl_ring_latency_seconds",
           "nccl_tree_latency_seconds", "noise_scale", "parameter_server_bytes",
           "rabenseifner_all_reduce_seconds", "rabenseifner_reduce_seconds",
           "rail_rings_all_reduce_seconds", "recursive_doubling_all_reduce_seconds",
           "reduce_scatter_seconds", "ring_all_reduce_bytes", "ring_all_reduce_seconds",
           "ring_all_reduce_steps", "scattered_broadcast_seconds", "steps_needed",
           "switched_all_to_all_seconds", "torus_all_reduce_bytes", "torus_all_reduce_seconds",
           "torus_all_to_all_bound_seconds", "tpu_all_gather_seconds", "tree_all_reduce_seconds",
           "tree_broadcast_seconds", "tree_reduce_seconds", "tree_scatter_seconds", "tree_steps",
           "zero3_exposed_seconds", "zero_memory_bytes", "zero_sent_bytes", "zero_state_bytes"]
