"""Run every check of the course, part by part, and say what each part found and took.

    python tools/run_checks.py test           what `make test` calls: within 10 minutes
    python tools/run_checks.py soak           what `make soak` calls: 40 minutes (aim: 30)
    python tools/run_checks.py test --only notebooks

All parts run, also after one has failed; the exit status is 0 only if none failed. A part passes
on evidence: at least one test passed, and every code cell on disk was one of them. Only the browser
may be missing, and the summary says so.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "checks"
BUDGET_MINUTES = {"test": 10, "soak": 30}
HANG_FACTOR = 2  # a part that alone takes twice the whole budget hangs, and is stopped
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
NOTEBOOK_FOLDERS = ("notebooks", "solutions")


@dataclass(frozen=True)
class Part:
    """One line of the summary: a command, and what must be there before it may run."""

    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    counts_tests: bool = True
    counts_cells: bool = False
    needs_browser: bool = False


@dataclass(frozen=True)
class Outcome:
    name: str
    verdict: str  # "passed", "FAILED" or "SKIPPED"
    seconds: float
    detail: str


def pytest(*arguments):
    return (sys.executable, "-m", "pytest", "-q", "-rs", "--durations=5", *arguments)


def pytest_files(*arguments, dist="loadfile"):
    """pytest with one worker per core, at most four; each takes whole files, in their order, or
    what another has not yet begun ("worksteal").
    """
    workers = min(4, os.cpu_count() or 1)
    return pytest("-n", str(workers), "--dist", dist, *arguments)


def python(*arguments):
    return (sys.executable, *arguments)


def has_browser():
    return any(map(shutil.which, CHROMIUM))


def nbval_part(name):
    command = pytest_files("--nbval", "--color=no", *NOTEBOOK_FOLDERS)
    return Part(name, command, NOTEBOOK_FOLDERS, counts_cells=True)


def test_parts():
    exercises, browser = "tests/test_exercises.py", "tests/browser"
    fast = ("-m", "not soak")
    unit = pytest_files("tests", *fast, f"--ignore={browser}", f"--ignore={exercises}")
    return [
        Part("ruff", python("-m", "ruff", "check", "."), counts_tests=False),
        Part("unit tests", unit),
        nbval_part("notebooks"),
        Part("exercises", pytest(exercises, *fast), (exercises, "exercises")),
        Part("browser", pytest(browser, *fast), (browser,), needs_browser=True),
    ]


def soak_parts():
    check = python("tools/make_notebooks.py", "--check")
    return [
        *(nbval_part(f"notebooks, run {run} of 5") for run in range(1, 6)),
        Part("notebooks, same bytes", check, NOTEBOOK_FOLDERS, counts_tests=False),
        Part("soak tests", pytest_files("tests", "-m", "soak", "--ignore=tests/browser",
                                        dist="worksteal")),
        Part("soak in the browser", pytest_files("tests/browser", "-m", "soak", dist="worksteal"),
             needs_browser=True),
    ]


def run_part(part, limit_seconds):
    """Run one part with its output on the terminal; its outcome."""
    print(f"\n=== {part.name} " + "=" * (90 - len(part.name)), flush=True)
    start = time.monotonic()
    missing = [name for name in part.needs if not (ROOT / name).exists()]
    if missing:
        return Outcome(part.name, "FAILED", 0.0, f"nothing to check: no {', '.join(missing)}")
    if part.needs_browser and not has_browser():
        print("*** NO CHROMIUM FOUND: the browser tests do not run. Nothing is known about what")
        print("*** a browser shows. Install Chromium (Debian: apt install chromium). ***")
        return Outcome(part.name, "SKIPPED", 0.0, "no Chromium: not checked")
    command = list(part.command)
    report = REPORTS / (part.name.replace(" ", "_").replace(",", "") + ".xml")
    if part.counts_tests:
        report.unlink(missing_ok=True)
        command.append(f"--junitxml={report}")
    status = call(command, limit_seconds)
    problem, detail = judge(part, status, report)
    verdict = "FAILED" if problem else "passed"
    return Outcome(part.name, verdict, time.monotonic() - start, problem or detail)


def call(command, limit_seconds):
    """The exit status of `command`, or None if it was stopped at the limit with all it started."""
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        return process.wait(limit_seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            stop_tree(process)


def stop_tree(process):
    """Kill a process and everything it has started."""
    family = [*psutil.Process(process.pid).children(recursive=True), process]
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def judge(part, status, report):
    """(problem or "", detail) of a part that has ended with `status` and left `report`."""
    if status is None:
        return "hangs: stopped at its limit", ""
    if not part.counts_tests:
        return (f"exit status {status}" if status else ""), ""
    if not report.exists():
        return f"exit status {status}, and no report", ""
    cases = list(ElementTree.parse(report).iter("testcase"))
    skipped = sum(case.find("skipped") is not None for case in cases)
    bad = sum(any(child.tag in ("failure", "error") for child in case) for case in cases)
    passed = len(cases) - skipped - bad
    detail = f"{passed} passed" + (f", {skipped} skipped" if skipped else "")
    if status:
        return f"{bad} failed, {detail} (exit status {status})", ""
    if not passed:
        return f"no evidence: {detail}", ""
    return (unchecked_cells(cases) if part.counts_cells else ""), detail


def unchecked_cells(cases):
    """Which code cells on disk no test ran, as one sentence; "" if all ran."""
    ran = Counter(case.get("classname").replace("/", ".") for case in cases)
    lines = []
    for folder in NOTEBOOK_FOLDERS:
        paths = sorted((ROOT / folder).glob("*.ipynb"))
        if not paths:
            lines.append(f"no notebook in {folder}/")
        for path in paths:
            cells = nbformat.read(path, as_version=4).cells
            expected = sum(cell.cell_type == "code" for cell in cells)
            found = ran[f"{folder}.{path.name}"]
            if found != expected:
                lines.append(f"{folder}/{path.name}: {found} of {expected} cells ran")
    return "; ".join(lines)


def summary(outcomes, budget_minutes):
    """The table at the end: verdict and time of each part, the total beside the budget."""
    lines = ["", "=== summary " + "=" * 82]
    for outcome in outcomes:
        head = f"{outcome.verdict:8}{outcome.name:24}{outcome.seconds:7.1f} s"
        lines.append(f"{head}   {outcome.detail}".rstrip())
    total = sum(outcome.seconds for outcome in outcomes)
    lines.append(f"{'':8}{'total':24}{total:7.1f} s   budget {budget_minutes} min")
    if total > 60 * budget_minutes:
        lines.append("*** over the budget ***")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Run the checks of the course.")
    parser.add_argument("kind", choices=BUDGET_MINUTES)
    parser.add_argument("--only", help="run the parts whose name begins like this")
    options = parser.parse_args()
    parts = test_parts() if options.kind == "test" else soak_parts()
    chosen = [part for part in parts if part.name.startswith(options.only or "")]
    if not chosen:
        parser.error(f"--only {options.only}: choose from {', '.join(p.name for p in parts)}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    budget = BUDGET_MINUTES[options.kind]
    outcomes = [run_part(part, 60 * budget * HANG_FACTOR) for part in chosen]
    print(summary(outcomes, budget))
    if len(chosen) < len(parts):
        print(f"*** only {len(chosen)} of {len(parts)} parts were run ***")
    sys.exit(any(outcome.verdict == "FAILED" for outcome in outcomes))


if __name__ == "__main__":
    main()
