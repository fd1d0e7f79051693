"""Notebooks that a plain nbval would pass, or hang on, must be red here; good ones stay green.

They are the cells of one good and one bad notebook, run by one pytest process beside copies of the
course's own conftest.py and nbval.cfg.
"""

import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

ROOT = Path(__file__).resolve().parent.parent
DEAD_KERNEL_LIMIT_SECONDS = 25  # with five times the usual 5 s; without the conftest it is 120 s


def cell(source, *outputs, count=1, tags=()):
    return new_code_cell(
        source, outputs=list(outputs), execution_count=count, metadata={"tags": list(tags)}
    )


def printed(text):
    return new_output("stream", name="stdout", text=text)


def result(text):
    return new_output("execute_result", {"text/plain": text}, execution_count=1)


def error(name, value):
    return new_output("error", ename=name, evalue=value, traceback=[])


IGNORE, RAISES = "nbval-ignore-output", "raises-exception"

GOOD = {
    "equal": cell("print('same')\n1 + 1", printed("same\n"), result("2")),
    "address": cell("object()", result("<object at 0xADDR>")),
    "semicolon": cell("1 + 1;"),
    "capture": cell("import os\nprint(os.environ.get('PYTEST_CURRENT_TEST'))", printed("None\n")),
    "raises": cell("1 / 0", error("ZeroDivisionError", "division by zero"), tags=[RAISES]),
    "timing": cell("import time\ntime.time()", result("0.5"), tags=[IGNORE]),
}
BAD = {
    "changed": (cell("print('new')", printed("old\n")), "Cell outputs differ"),
    "line_magic": (cell("%nope\nprint('lost')", tags=[IGNORE]), "ended with status 'error'"),
    "cell_magic": (cell("%%nope 4\nprint('lost')", tags=[IGNORE]), "ended with status 'error'"),
    "never_run": (cell("print('new')", count=None), "never run"),
    "calm": (cell("pass", tags=[RAISES]), "no longer raises"),
    "calm_ignored": (cell("pass", tags=[RAISES, IGNORE]), "no longer raises"),
    "other_error": (
        cell("nope", error("ZeroDivisionError", "division by zero"), tags=[RAISES, IGNORE]),
        "raises ['NameError']",
    ),
    "skipped": (cell("print('new')", printed("old\n"), tags=["nbval-skip"]), "not checked"),
    "dead": (cell("import os\nos._exit(0)"), "kernel died"),
}


def nbval(root, notebooks, *options):
    """Run nbval as the course does on {name: cells}; {name: [(failure or None, seconds), ...]}."""
    (root / "tests").mkdir()
    shutil.copy(ROOT / "conftest.py", root)
    shutil.copy(ROOT / "tests" / "nbval.cfg", root / "tests")
    (root / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    for name, cells in notebooks.items():
        nbformat.write(new_notebook(cells=cells), root / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--junitxml=report.xml", *options]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {name: [] for name in notebooks}
    for case in ElementTree.parse(root / "report.xml").iter("testcase"):
        failures = [child.text or "" for child in case if child.tag in ("failure", "error")]
        name = case.get("classname").removesuffix(".ipynb")
        found[name].append(("\n".join(failures) or None, float(case.get("time"))))
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """name -> (failure or None, seconds) of every cell above; the one that kills comes last."""
    bad = [content for content, _ in BAD.values()]
    start = time.monotonic()
    notebooks = {"good": list(GOOD.values()), "bad": bad}
    found = nbval(tmp_path_factory.mktemp("holes"), notebooks)
    print(f"{len(GOOD)} good and {len(BAD)} bad cells in {time.monotonic() - start:.1f} s")
    return dict(zip([*GOOD, *BAD], found["good"] + found["bad"], strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_a_good_notebook_is_green(outcomes, name):
    assert outcomes[name][0] is None


@pytest.mark.parametrize("name", BAD)
def test_a_bad_notebook_is_red(outcomes, name):
    failure, _ = outcomes[name]
    assert failure is not None and BAD[name][1] in failure


def test_a_dead_kernel_is_noticed_at_once(outcomes):
    seconds = outcomes["dead"][1]
    print(f"dead kernel noticed after {seconds:.1f} s")
    assert seconds < DEAD_KERNEL_LIMIT_SECONDS


@pytest.mark.soak
def test_an_endless_cell_is_stopped_and_named(tmp_path):
    cells = [cell("while True:\n    pass"), cell("1 + 1", result("2"), count=2)]
    found = nbval(tmp_path, {"endless": cells}, "--nbval-cell-timeout=3")
    failure, seconds = found["endless"][0]
    print(f"endless cell stopped after {seconds:.1f} s")
    assert "Cell 0: Timeout of 3 seconds" in failure
    assert seconds < DEAD_KERNEL_LIMIT_SECONDS
