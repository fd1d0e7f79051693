"""The driver of `make test` passes a part on evidence only, and stops one that hangs."""

import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import run_checks
from tools.run_checks import Outcome, Part, run_part, stop_tree, summary, unchecked_cells


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(run_checks, "ROOT", tmp_path)
    monkeypatch.setattr(run_checks, "REPORTS", tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return tmp_path


def run_tests(root, text):
    """Run `text` as the only tests of a part; without plugins, so that it takes half a second."""
    (root / "test_sample.py").write_text("import pytest\n" + text)
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sample.py")
    return run_part(Part("sample", command), limit_seconds=60)


@pytest.mark.parametrize(
    "text, verdict, detail",
    [
        ("def test_a(): pass", "passed", "1 passed"),
        ("def test_a(): pass\ndef test_b(): pytest.skip()", "passed", "1 passed, 1 skipped"),
        ("def test_a(): pass\ndef test_b(): assert 0", "FAILED", "1 failed, 1 passed"),
        ("def test_a(): pytest.skip()", "FAILED", "no evidence: 0 passed, 1 skipped"),
        ("", "FAILED", "0 failed, 0 passed (exit status 5)"),
        ("nonsense(", "FAILED", "1 failed, 0 passed"),
    ],
)
def test_only_a_test_that_passed_is_evidence(root, text, verdict, detail):
    outcome = run_tests(root, text)
    assert outcome.verdict == verdict and outcome.detail.startswith(detail)


def test_a_missing_folder_is_a_failure(root):
    outcome = run_part(Part("exercises", ("true",), needs=("exercises",)), limit_seconds=60)
    assert (outcome.verdict, outcome.detail) == ("FAILED", "nothing to check: no exercises")


def test_a_missing_browser_is_skipped_aloud(root, monkeypatch, capsys):
    monkeypatch.setattr(run_checks, "has_browser", lambda: False)
    outcome = run_part(Part("browser", ("false",), needs_browser=True), limit_seconds=60)
    assert outcome.verdict == "SKIPPED"
    assert "NO CHROMIUM" in capsys.readouterr().out


def test_a_part_that_hangs_is_stopped(root):
    command = (sys.executable, "-c", "import time; time.sleep(600)")
    outcome = run_part(Part("hang", command, counts_tests=False), limit_seconds=0.5)
    assert (outcome.verdict, outcome.detail) == ("FAILED", "hangs: stopped at its limit")


def runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_stopping_takes_the_children_along():
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    stop_tree(parent)
    parent.stdout.close()
    assert parent.returncode is not None
    end = time.monotonic() + 5
    while runs(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not runs(child)


def test_a_code_cell_that_no_test_ran_is_named(root):
    cells = [new_markdown_cell("words"), new_code_cell("1"), new_code_cell("2")]
    for folder in ("notebooks", "solutions"):
        (root / folder).mkdir()
    nbformat.write(new_notebook(cells=cells), root / "notebooks" / "00_start.ipynb")
    case = ElementTree.Element("testcase", classname="notebooks.00_start.ipynb")
    assert unchecked_cells([case]) == (
        "notebooks/00_start.ipynb: 1 of 2 cells ran; no notebook in solutions/"
    )


def test_the_summary_gives_times_and_the_budget():
    outcomes = [Outcome("ruff", "passed", 1.0, ""), Outcome("unit tests", "FAILED", 600.0, "why")]
    text = summary(outcomes, budget_minutes=10)
    assert "passed  ruff" in text and "1.0 s" in text and "why" in text
    assert "601.0 s   budget 10 min" in text and "over the budget" in text
