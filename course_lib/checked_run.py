"""What a notebook's kernel must not see while its outputs are compared or stored."""

from __future__ import annotations

import itertools
import os
import tempfile

_points = tempfile.TemporaryDirectory(prefix="lockstep-points-")  # goes with this process
_kernels = itertools.count()


def environment() -> dict[str, str]:
    """Environment of a kernel whose outputs must not depend on the day, the learner or the machine.

    No status of runs that take long, no points of whoever works here, one thread of torch whatever
    the number of cores (as in a rank), and no PYTEST_CURRENT_TEST, which makes ipykernel stop
    capturing what child processes print.
    """
    env = {key: text for key, text in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    points = os.path.join(_points.name, f"{next(_kernels)}.json")
    return {**env, "LOCKSTEP_STATUS": "0", "LOCKSTEP_PROGRESS": points, "OMP_NUM_THREADS": "1"}
