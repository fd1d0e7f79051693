"""What the learner has earned, what comes next, and the map of the course.

Points live in `.lockstep/progress.json` beside the notebooks; the best result of each task counts.
The environment variable LOCKSTEP_PROGRESS names another file. Checks that run inside `solutions/`
note nothing.
"""

from __future__ import annotations

import html
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Lecture:
    """One line of the map. `needs`: numbers of the lectures to read before; `routes`: besides
    "all".
    """

    number: int
    title: str
    minutes: int
    needs: tuple[int, ...] = ()
    routes: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        return f"{self.number:02d}"


BOTH, WEEKEND = ("3 hours", "weekend"), ("weekend",)
LECTURES = (
    Lecture(0, "Start", 30, (), BOTH),
    Lecture(1, "Collectives", 40, (0,), BOTH),
    Lecture(2, "Machines and networks", 30, (1,)),
    Lecture(3, "All-reduce", 45, (1,), WEEKEND),
    Lecture(4, "Parameter server (side lecture)", 30, (3,)),
    Lecture(5, "Data parallelism", 45, (1,), BOTH),
    Lecture(6, "ZeRO", 45, (5,), WEEKEND),
    Lecture(7, "Batch size and accumulation", 35, (5,)),
    Lecture(8, "Pipeline parallelism", 45, (5,), BOTH),
    Lecture(9, "Zero bubble", 45, (8,)),
    Lecture(10, "Tensor parallelism", 45, (1,), WEEKEND),
    Lecture(11, "Sequence parallelism and activation memory", 40, (10,), WEEKEND),
    Lecture(12, "Recomputation", 30, (11,)),
    Lecture(13, "Ring attention", 40, (10,)),
    Lecture(14, "Experts", 40, (1,)),
    Lecture(15, "Meshes and 4D parallelism", 45, (5, 8, 10), WEEKEND),
    Lecture(16, "Planner", 35, (15,), WEEKEND),
    Lecture(17, "Failure lab", 30, (1,)),
)
ROUTES = ("3 hours", "weekend", "all")


def progress() -> Progress:
    """The map of the course with the learner's points per lecture, what to do next, and three
    routes.

    Shows as a table in a notebook; only lectures and exercises that exist are links.
    """
    from .checks import TASKS

    in_order = sorted(TASKS.values(), key=lambda task: tuple(map(int, task.number.split("."))))
    return Progress(in_order, read())


def path() -> Path:
    """The file that keeps the points."""
    return Path(os.environ.get("LOCKSTEP_PROGRESS") or ROOT / ".lockstep" / "progress.json")


def read() -> dict[str, float]:
    """Best points per task name; empty when nothing was noted or the file is damaged."""
    try:
        tasks = json.loads(path().read_text())["tasks"]
        return {str(name): float(points) for name, points in tasks.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def note(name: str, points: float) -> None:
    """Keep the points of a task if they are the best so far. Never raises: progress is not worth a
    failed check.
    """
    if Path.cwd().name == "solutions":
        return
    try:
        best = read()
        if points <= best.get(name, -1):
            return
        target = path()
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
            json.dump({"tasks": best | {name: points}}, file, indent=1, sort_keys=True)
        os.replace(file.name, target)  # two notebooks at once never leave half a file
    except OSError:
        return


class Progress:
    """What `progress()` returns: `points`, `max_points`, `next`, and the same as text and HTML."""

    def __init__(self, tasks: list, best: dict[str, float]):
        self.tasks, self.best = tasks, best

    def earned(self, task) -> float:
        return min(self.best.get(task.name, 0), task.max_points)

    @property
    def points(self) -> float:
        return sum(self.earned(task) for task in self.tasks)

    @property
    def max_points(self) -> float:
        return sum(task.max_points for task in self.tasks)

    @property
    def open_task(self):
        """The first task that still has points to give; None when every task is solved."""
        return next((t for t in self.tasks if self.earned(t) < t.max_points), None)

    @property
    def next(self) -> str:
        """What to do next, in words."""
        task = self.open_task
        if task is None:
            return "every task is solved"
        where = task.exercise if task.in_lecture else f"work/{task.exercise}.ipynb"
        return f"task {task.number}, {task.name}, in {where}"

    def of_lecture(self, lecture: Lecture) -> str:
        """"3 of 10", the points of all tasks of a lecture and its exercise; "" if it has none."""
        tasks = [task for task in self.tasks if _lecture_of(task) == lecture.number]
        earned, most = sum(map(self.earned, tasks)), sum(task.max_points for task in tasks)
        return f"{earned:g} of {most:g}" if tasks else ""

    def course(self) -> list[tuple[str, str, str, str, str]]:
        """(lecture, title, minutes, after, points) of every lecture of the map."""
        return [(*_line(lecture), self.of_lecture(lecture)) for lecture in LECTURES]

    def rows(self, lecture: int | None = None) -> list[tuple[str, str, str, str]]:
        """(exercise, task, function, points) of every task, or of one lecture's."""
        return [
            (task.exercise, task.number, task.name, f"{self.earned(task):g} of {task.max_points:g}")
            for task in self.tasks
            if lecture is None or _lecture_of(task) == lecture
        ]

    def _now(self) -> list[tuple[str, str, str, str]]:
        """The rows of the lecture that has the next task."""
        return self.rows(_lecture_of(self.open_task)) if self.open_task else []

    def __str__(self) -> str:
        lines = ["The course, and your points", *_columns([COURSE, *self.course()])]
        lines += [f"Sum: {self.points:g} of {self.max_points:g}. Next: {self.next}"]
        if now := self._now():
            lines += ["", "Where you are", *_columns([TASK, *now])]
        return "\n".join([*lines, "", "Three routes", *map(_route, ROUTES)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        links = [(None, notebook_of(x), None, None, exercise_of(x)) for x in LECTURES]
        course = _table(COURSE, self.course(), links)
        now = f"<b>Where you are</b>{_table(TASK, self._now())}" if self._now() else ""
        routes = "".join(f"<li>{html.escape(_route(route))}</li>" for route in ROUTES)
        return (
            f"<div><b>The course, and your points</b>{course}<p>Sum: {self.points:g} of "
            f"{self.max_points:g}. Next: {html.escape(self.next)}</p>{now}<b>Three "
            f"routes</b><ul>{routes}</ul></div>"
        )


COURSE = ("lecture", "title", "minutes", "after", "points")
TASK = ("exercise", "task", "function", "points")


def _lecture_of(task) -> int:
    return int(task.number.partition(".")[0])


def notebook_of(lecture: Lecture) -> Path | None:
    """The lecture's notebook, or None while it is not there."""
    return next(iter(sorted((ROOT / "notebooks").glob(f"{lecture.tag}_*.ipynb"))), None)


def exercise_of(lecture: Lecture) -> Path | None:
    """The learner's copy of the lecture's exercise, else the exercise, else None."""
    folders = (ROOT / "work", ROOT / "exercises")
    found = (path for folder in folders for path in sorted(folder.glob(f"{lecture.tag}_*.ipynb")))
    return next(found, None)


def _line(lecture: Lecture) -> tuple[str, str, str, str]:
    after = " ".join(f"{n:02d}" for n in lecture.needs) or "-"
    there = "" if notebook_of(lecture) else " (to come)"
    return lecture.tag, lecture.title + there, str(lecture.minutes), after


def _route(route: str) -> str:
    chosen = [lecture for lecture in LECTURES if route == "all" or route in lecture.routes]
    there = [lecture for lecture in chosen if notebook_of(lecture)]
    later = " ".join(lecture.tag for lecture in chosen if lecture not in there)
    minutes = sum(lecture.minutes for lecture in there)
    return (f"{route}: lectures {' '.join(lecture.tag for lecture in there)}; {minutes} minutes of "
            "reading and running, exercises apart" + (f"; to come: {later}" if later else ""))


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _table(head, rows, links=()) -> str:
    """An HTML table; links[row][column] is the file that a cell leads to, or None."""
    lines = ["".join(f"<th style='text-align:left'>{name}</th>" for name in head)]
    for number, row in enumerate(rows):
        cells = [html.escape(cell) for cell in row]
        for column, target in enumerate(links[number] if links else ()):
            if target is not None:
                cells[column] = f"<a href='{os.path.relpath(target)}'>{cells[column]}</a>"
        lines.append("".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
