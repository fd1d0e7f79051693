"""Run the notebooks again and store what they show, so that a second call changes no byte.

    python tools/make_notebooks.py [--fresh] [--check] [FILES]     default: notebooks/ solutions/

Each notebook runs in a fresh kernel of this environment. Stored is what tests compare and readers
need, and nothing of the machine that ran it: no widget state or model ids (a stored view shows its
static picture), no timing, no versions, no addresses. A cell that writes to stderr, raises without
the tag `raises-exception`, or carries that tag and does not raise, stops its notebook: the file
stays as it was, and the exit status is 1.

Cells tagged `nbval-ignore-output` (timings) differ on each run. Their stored outputs stay as long
as everything else in the notebook does; --fresh renews them. --check writes nothing, and fails if
a notebook would change.
"""

import argparse
import os
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from course_lib.checked_run import environment

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("notebooks", "solutions")
CELL_LIMIT_SECONDS = 120
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
NOTEBOOK_KEYS = {"lockstep", "nbgrader", "title"}
CELL_NOISE = {"execution", "ExecuteTime", "collapsed", "scrolled", "trusted", "vscode", "outputId"}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SANITIZE = re.findall(
    r"^regex: (.*)\nreplace: (.*)$",
    (ROOT / "tests" / "nbval.cfg").read_text(encoding="utf-8"),
    re.MULTILINE,
)
# A traceback's path up to the part that is the same on every machine.
MACHINE_PATH = re.compile(r"[\w~./\\:-]*?[\\/](?=(?:site-packages|python3\.\d+|course_lib)[\\/])")


class BadNotebook(Exception):
    """A notebook that cannot be stored as it is; the text names the cell and the rule."""


def run(notebook, folder):
    """Execute all cells of `notebook` in place, in `folder`, with this environment's kernel."""
    manager = AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        notebook,
        km=manager,
        kernel_name="python3",
        timeout=CELL_LIMIT_SECONDS,
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute(env=environment(), cleanup_kc=True)
    except CellExecutionError as error:
        last = str(error).strip().splitlines()[-1]
        raise BadNotebook(f"a cell stops it: {last}") from error


def tags(cell):
    return cell.metadata.get("tags", [])


def judge(notebook):
    """Raise BadNotebook for what a reader must not see, or a test could not compare."""
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        where = f"cell {number} ({cell.source.strip().splitlines()[:1]})"
        if not cell.source.strip():
            raise BadNotebook(f"cell {number} is empty")
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                raise BadNotebook(f"{where} writes to stderr: {output.text.strip()[:200]}")
        raised = any(output.output_type == "error" for output in cell.outputs)
        if "raises-exception" in tags(cell) and not raised:
            raise BadNotebook(f"{where} is tagged raises-exception and does not raise")


def tidy(notebook):
    """Keep of an executed notebook only what is the same on every machine."""
    kept = {key: notebook.metadata[key] for key in NOTEBOOK_KEYS & set(notebook.metadata)}
    notebook.metadata = nbformat.from_dict({**METADATA, **kept})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{number}")
        for key in CELL_NOISE & set(cell.metadata):
            del cell.metadata[key]
        for output in cell.get("outputs", []):
            tidy_output(output)


def tidy_output(output):
    """Replace what differs by machine or run: model ids, addresses, paths in tracebacks."""
    if output.output_type == "stream":
        output.text = sanitized(output.text)
    elif output.output_type == "error":
        output.traceback = [MACHINE_PATH.sub("", sanitized(line)) for line in output.traceback]
        output.evalue = sanitized(output.evalue)
    else:
        output.data.pop(WIDGET_VIEW, None)
        output.metadata.pop(WIDGET_VIEW, None)
        if "text/plain" in output.data:
            output.data["text/plain"] = sanitized(output.data["text/plain"])


def sanitized(text):
    for pattern, replacement in SANITIZE:
        text = re.sub(pattern, replacement, text)
    return text


def keep_ignored_outputs(new, old):
    """Put the stored outputs of unchecked cells back, unless something that is checked changed."""
    ignored = [i for i, cell in enumerate(new.cells) if "nbval-ignore-output" in tags(cell)]
    if len(new.cells) != len(old.cells) or any(not old.cells[i].get("outputs") for i in ignored):
        return
    merged = nbformat.from_dict(new)
    for i in ignored:
        merged.cells[i].outputs = old.cells[i].outputs
    if merged == old:
        new.cells = merged.cells


def read(path):
    """The notebook in the newest format, with ids that do not differ from call to call."""
    notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=nbformat.NO_CONVERT)
    if notebook.nbformat != 4:
        raise BadNotebook(f"is in format {notebook.nbformat}; the course stores format 4")
    return notebook


def make(path, fresh=False, check=False):
    """Run one notebook and store it; returns "stored", "unchanged" or, with check, "differs"."""
    old, new = read(path), read(path)
    for cell in new.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    tidy(new)
    run(new, path.parent)
    judge(new)
    tidy(new)
    if not fresh:
        keep_ignored_outputs(new, old)
    nbformat.validate(new)
    text = nbformat.writes(new) + "\n"
    if text.encode() == path.read_bytes():
        return "unchanged"
    if not check:
        path.write_bytes(text.encode())
    return "differs" if check else "stored"


def outcome_of(path, fresh, check):
    """(what became of the notebook, seconds)."""
    start = time.monotonic()
    try:
        outcome = make(path, fresh, check)
    except BadNotebook as problem:
        outcome = f"NOT STORED: {problem}"
    return outcome, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description="Run the notebooks and store what they show.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--fresh", action="store_true", help="renew unchecked outputs too")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a change")
    options = parser.parse_args()
    paths = options.files or sorted(
        path for folder in FOLDERS for path in (ROOT / folder).glob("*.ipynb")
    )
    if not paths:
        sys.exit("no notebook found: nothing was run")
    # Timings that are to be stored anew are taken one at a time
    workers = 1 if options.fresh else min(4, os.cpu_count() or 1, len(paths))
    failed = 0
    with ProcessPoolExecutor(workers) as pool:
        work = partial(outcome_of, fresh=options.fresh, check=options.check)
        for path, (outcome, seconds) in zip(paths, pool.map(work, paths)):
            failed += outcome not in ("stored", "unchanged")
            print(f"{path.parent.name}/{path.name}: {outcome}, {seconds:.1f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
