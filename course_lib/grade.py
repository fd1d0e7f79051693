"""Grade exercise notebooks from the command line.

    python -m course_lib.grade work/00_start.ipynb

Prints the points of each task with a hint where some are missing. Exit status: 0 all points, 1 not
all, 2 when something could not be graded. Learners' code runs only in rank processes, each task
with a time limit; the checks are those of the installed course, whatever the notebook holds.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import random
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from .checks import TASKS
from .checks.machinery import LIMIT, Task
from .checks.report import FAILED, UNGRADED, Report
from .checks.verdicts import HINTS
from .grade_notebook import Answer, Unreadable, exercise_of, find_answer, read_notebook
from .grade_process import CheckingProcess, refusal
from .progress import ROOT, note

ALL, NOT_ALL, COULD_NOT = 0, 1, 2


@dataclass
class Grade:
    """One file's result. `trouble` says why the file as a whole could not be graded."""

    path: Path
    exercise: str = ""
    reports: list[Report] = field(default_factory=list)
    trouble: str = ""

    @property
    def points(self) -> float:
        return sum(report.points for report in self.reports)

    @property
    def max_points(self) -> float:
        return sum(report.max_points for report in self.reports)

    @property
    def status(self) -> int:
        if self.trouble or not self.reports or any(r.outcome == UNGRADED for r in self.reports):
            return COULD_NOT
        return ALL if all(r.passed for r in self.reports) else NOT_ALL


def grade(path, seed: int, limit: float = LIMIT, checking: CheckingProcess | None = None) -> Grade:
    """Grade one notebook; never raises for what the file holds.

    seed: of the inputs. limit: seconds per task. checking: a process to share between files.
    """
    path = Path(path)
    exercises = {task.exercise for task in TASKS.values() if not task.in_lecture}
    try:
        notebook = read_notebook(path)
        exercise = exercise_of(notebook, path, exercises)
    except Unreadable as trouble:
        return Grade(path, trouble=str(trouble))
    result = Grade(path, exercise)
    with nullcontext(checking) if checking else CheckingProcess() as process:
        for task in TASKS.values():
            if task.exercise == exercise:
                answer = find_answer(notebook, path, task.name)
                result.reports.append(_report(task, answer, process, seed, limit))
    if ROOT / "work" in path.resolve().parents:
        for report in result.reports:
            note(report.name, report.points)
    return result


def _report(task: Task, answer: Answer, process: CheckingProcess, seed: int, limit: float):
    if answer.problem:
        hint = HINTS[answer.problem]
        report = refusal(task, FAILED, answer.problem, answer.message, hint)
    else:
        report = process.grade(task, answer.source, seed, limit)
    report.notes += answer.notes
    return report


def as_text(grades: list[Grade], seed: int) -> str:
    lines = []
    for g in grades:
        lines.append(
            f"{g.path.name}: {g.trouble}" if g.trouble else f"{g.path.name} (exercise {g.exercise})"
        )
        for report in g.reports:
            lines += ["  " + line for line in str(report).splitlines()]
        if g.reports:
            lines += [f"  Sum: {g.points:g} of {g.max_points:g} points"]
        lines.append("")
    return "\n".join([*lines, f"Inputs drawn with seed {seed}; --seed {seed} draws the same."])


def as_json(grades: list[Grade], seed: int) -> str:
    return json.dumps(
        {
            "seed": seed,
            "files": [
                {
                    "file": g.path.name,
                    "exercise": g.exercise,
                    "trouble": g.trouble,
                    "points": g.points,
                    "max_points": g.max_points,
                    "status": g.status,
                    "tasks": [r.as_dict() for r in g.reports],
                }
                for g in grades
            ],
        },
        indent=1,
    )


def as_csv(grades: list[Grade], seed: int) -> str:
    """One line per file and task; a file that could not be graded has one line without a task."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["file", "task", "name", "outcome", "points", "max_points", "verdict", "seed"])
    for g in grades:
        for r in g.reports:
            writer.writerow(
                [g.path.name, r.task, r.name, r.outcome, r.points, r.max_points, r.verdict, seed]
            )
        if g.trouble:
            writer.writerow([g.path.name, "", "", UNGRADED, "", "", g.trouble, seed])
    return out.getvalue().rstrip("\n")


def as_html(grades: list[Grade], seed: int) -> str:
    parts = [
        f"<h2>{html.escape(g.path.name)}: "
        + (html.escape(g.trouble) if g.trouble else f"{g.points:g} of {g.max_points:g} points")
        + "</h2>"
        + "".join(report._repr_html_() for report in g.reports)
        for g in grades
    ]
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Points</title>"
        "<body style='font-family:sans-serif;max-width:60em;margin:2em auto'>"
        + "".join(parts)
        + f"<p>Inputs drawn with seed {seed}.</p></body></html>"
    )


def as_report(grades: list[Grade], seed: int) -> str:
    """What a class got wrong: for each task, how many passed, and each verdict with its count."""
    told: dict[tuple[str, str], list[Report]] = {}
    for report in (r for g in grades for r in g.reports):
        told.setdefault((report.task, report.name), []).append(report)
    lines = []
    for (task, name), reports in told.items():
        passed = sum(report.passed for report in reports)
        mean = sum(report.points for report in reports) / len(reports)
        lines += [f"Task {task}  {name}  {passed} of {len(reports)} passed, {mean:.1f} of "
                  f"{reports[0].max_points} points on average"]
        missed = Counter(report.verdict for report in reports if not report.passed)
        hints = {report.verdict: report.hint for report in reports}
        lines += [f"  {n:4}  {verdict}: {hints[verdict]}".rstrip(": ")
                  for verdict, n in missed.most_common()]
    lines += [f"{g.path.name}: {g.trouble}" for g in grades if g.trouble]
    return "\n".join([*lines, f"Inputs drawn with seed {seed}."])


FORMATS = {
    "text": as_text,
    "json": as_json,
    "csv": as_csv,
    "html": as_html,
    "report": as_report,
}


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.grade",
        description=(
            "Grade exercise notebooks. Exit status: 0 all points, 1 not all, 2 something could not "
            "be graded."
        ),
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="an exercise notebook, such as work/00_start.ipynb"
    )
    parser.add_argument(
        "--seed", type=int, help="draw the same inputs again; default: fresh ones at every call"
    )
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds per task (default %(default)g)"
    )
    kinds = parser.add_mutually_exclusive_group()
    for name in ("json", "html", "csv", "report"):
        what = f"{name.upper()} instead of text" if name != "report" else "what a class got wrong"
        kinds.add_argument(
            f"--{name}",
            dest="format",
            action="store_const",
            const=name,
            default="text",
            help=f"write {what}",
        )
    options = parser.parse_args(arguments)
    if not options.limit > 0:
        parser.error(f"--limit {options.limit:g}: must be more than 0 seconds")
    seed = random.SystemRandom().getrandbits(31) if options.seed is None else options.seed
    with CheckingProcess() as checking:
        grades = [grade(file, seed, options.limit, checking) for file in options.files]
    print(FORMATS[options.format](grades, seed))
    return max(g.status for g in grades)


if __name__ == "__main__":
    sys.exit(main())
