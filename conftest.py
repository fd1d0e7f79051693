"""What nbval cannot see by itself, made visible; and the options the course always needs.

`pytest --nbval notebooks` runs every stored notebook in a fresh kernel and compares each output
with the stored one. By itself nbval passes a cell that never ran. With this file a cell is red
  - if it names an unknown magic: nbval sees no error, and the rest of the cell has not run;
  - if its stored copy was never run (`execution_count: null`): nbval compares nothing;
  - if it is tagged `raises-exception` and no longer raises, or raises something else;
  - if it is tagged `nbval-skip`: what is not run is not checked;
  - if the kernel dies: nbval waits for the whole cell limit, this file a second.
Two more differences from JupyterLab go: a result hidden by a trailing `;` stays hidden, and the
kernel does not inherit PYTEST_CURRENT_TEST, which switches off the capture of children's prints.

It replaces internals of nbval 0.11, so pyproject.toml pins that, and tests/test_nbval_holes.py
feeds it one bad notebook for each line above.
"""

import queue
import time
from pathlib import Path

CELL_LIMIT_SECONDS = 120  # above every limit of the launcher, so that the launcher speaks first
NBVAL_DEFAULT_LIMIT = 2000
SANITIZE = Path(__file__).parent / "tests" / "nbval.cfg"


def pytest_configure(config):
    if not config.getoption("nbval", False):
        return
    option = config.option
    option.nbval_current_env = option.nbval_kernel_name is None
    option.nbval_sanitize_with = option.nbval_sanitize_with or str(SANITIZE)
    if option.nbval_cell_timeout == NBVAL_DEFAULT_LIMIT:
        option.nbval_cell_timeout = CELL_LIMIT_SECONDS
    _replace_internals()


def _replace_internals():
    import nbval.kernel
    import nbval.plugin

    from course_lib.checked_run import environment

    start, run_cell = nbval.kernel.start_new_kernel, nbval.plugin.IPyNbCell.runtest

    def start_clean(*args, **kwargs):
        return start(*args, env=environment(), **kwargs)

    def run_and_judge(cell):
        if cell.options["skip"]:
            cell.raise_cell_error("tagged nbval-skip: a cell that is not run is not checked")
        cell.parent.kernel.last_status = None
        run_cell(cell)
        problem = _unseen_problem(cell)
        if problem:
            cell.raise_cell_error(problem)

    nbval.kernel.start_new_kernel = start_clean
    nbval.kernel.RunningKernel.execute_cell_input = _execute
    nbval.kernel.RunningKernel.await_reply = _await_reply
    nbval.plugin.IPyNbCell.runtest = run_and_judge


def _execute(kernel, source, allow_stdin=None):
    # With store_history=False, nbval's choice, IPython shows a result in spite of a trailing ';'.
    return kernel.kc.execute(
        source, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
    )


def _await_reply(kernel, msg_id, timeout=None):
    """Wait for the reply to `msg_id`, keep its status, and notice a dead kernel on the way."""
    end = time.monotonic() + timeout
    while True:
        if not kernel.km.is_alive():
            raise RuntimeError("the kernel died while it ran this cell")
        left = end - time.monotonic()
        try:
            message = kernel.kc.get_shell_msg(timeout=min(1.0, max(0.01, left)))
        except queue.Empty:
            if left <= 0:
                raise
            continue
        if message["parent_header"].get("msg_id") == msg_id:
            kernel.last_status = message["content"]["status"]
            return


def _unseen_problem(cell):
    """What is wrong with a cell that nbval has passed, or None."""
    status, may_raise = cell.parent.kernel.last_status, cell.options["check_exception"]
    if cell.cell.execution_count is None and cell.cell.source.strip():
        return "the stored cell was never run, so there is nothing to compare with"
    if not may_raise:
        return None if status == "ok" else f"ended with status {status!r} (an unknown magic?)"
    if status != "error":
        return "tagged raises-exception, but it no longer raises"
    raised, stored = _exceptions(cell.test_outputs), _exceptions(cell.cell.outputs)
    return None if raised == stored else f"raises {raised}, stored is {stored}"


def _exceptions(outputs):
    return [output.ename for output in outputs if output.output_type == "error"]
