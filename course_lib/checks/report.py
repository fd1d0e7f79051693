"""What a check says: points per subcheck, the rank and the step that went wrong, and a hint.

The text of a Report holds no times and no paths, so a notebook that shows one can be compared
strictly.
"""

from __future__ import annotations

import html
import sys
from dataclasses import dataclass, field

PASSED, FAILED, NOT_RUN, UNGRADED = "passed", "failed", "not run", "could not grade"


class NotPassed(AssertionError):
    """Raised by `Report.require()`; its text is the report."""


@dataclass(frozen=True)
class Result:
    """One subcheck. `gate`: without it the other subchecks earn nothing, they are too easy
    alone.
    """

    name: str
    status: str
    max_points: float = 1
    gate: bool = False
    verdict: str = ""
    message: str = ""
    hint: str = ""


@dataclass
class Report:
    """The outcome of one task: `passed`, `points` of `max_points`, `verdict`, `messages`, `hint`.

    `verdict` is "passed" or the code of the first thing that went wrong ("deadlock",
    "not-divided"): the same misconception always has the same code. `outcome` is "passed", "failed"
    or "could not grade"; the last means that the machine, not the answer, was in the way.
    """

    task: str
    name: str
    results: list[Result]
    run: object = None  # the last run of the learner's function that finished
    graph: dict | None = None  # who waited for whom, when the run stopped in a deadlock
    notes: list[str] = field(default_factory=list)
    shown_in: object = None

    @property
    def outcome(self) -> str:
        states = [r.status for r in self.results]
        if UNGRADED in states:
            return UNGRADED
        return PASSED if states and all(state == PASSED for state in states) else FAILED

    @property
    def passed(self) -> bool:
        return self.outcome == PASSED

    @property
    def points(self) -> float:
        """Sum over the subchecks that passed; 0 while a gate is closed or nothing could be
        graded.
        """
        if self.outcome == UNGRADED or any(r.gate and r.status != PASSED for r in self.results):
            return 0
        return _number(sum(r.max_points for r in self.results if r.status == PASSED))

    @property
    def max_points(self) -> float:
        return _number(sum(r.max_points for r in self.results))

    @property
    def decisive(self) -> Result | None:
        """What the verdict and the hint speak of: trouble first, then a closed gate, then the first
        failure.
        """
        wrong = [r for r in self.results if r.status in (FAILED, UNGRADED)]
        return min(wrong, key=lambda r: (r.status != UNGRADED, not r.gate), default=None)

    @property
    def verdict(self) -> str:
        if self.passed:
            return PASSED
        return self.decisive.verdict if self.decisive else "no-evidence"

    @property
    def messages(self) -> list[str]:
        return [f"{r.name}: {r.message}" for r in self.results if r.message]

    @property
    def hint(self) -> str:
        return self.decisive.hint if self.decisive else ""

    def require(self) -> Report:
        """Raise `NotPassed` unless every subcheck passed; for scripts and tests."""
        if not self.passed:
            raise NotPassed(str(self))
        return self

    def as_dict(self) -> dict:
        """Plain data, for `grade --json`."""
        return {
            "task": self.task,
            "name": self.name,
            "outcome": self.outcome,
            "points": self.points,
            "max_points": self.max_points,
            "verdict": self.verdict,
            "hint": self.hint,
            "notes": list(self.notes),
            "subchecks": [
                {
                    "name": r.name,
                    "status": r.status,
                    "max_points": r.max_points,
                    "gate": r.gate,
                    "verdict": r.verdict,
                    "message": r.message,
                    "hint": r.hint,
                }
                for r in self.results
            ],
        }

    @classmethod
    def from_dict(cls, data: dict) -> Report:
        """The Report that `as_dict` wrote, without its run. Only `subchecks` decides the points."""
        return cls(
            data["task"],
            data["name"],
            [Result(**row) for row in data["subchecks"]],
            notes=list(data["notes"]),
        )

    @property
    def headline(self) -> str:
        points = f"{self.points} of {self.max_points} points"
        return f"Task {self.task}  {self.name}  {UNGRADED if self.outcome == UNGRADED else points}"

    def __str__(self) -> str:
        width = max((len(r.status) for r in self.results), default=0)
        lines = [self.headline]
        for r in self.results:
            lines.append(f"  {r.status:<{width}}  {r.name}")
            lines += [f"  {'':<{width}}    {line}" for line in r.message.splitlines()]
        lines += [f"  hint: {self.hint}"] if self.hint else []
        lines += [f"  note: {note}" for note in self._all_notes()]
        return "\n".join(lines)

    def _all_notes(self) -> list[str]:
        closed = [r.name for r in self.results if r.gate and r.status != PASSED]
        earned = any(r.status == PASSED and r.max_points for r in self.results)
        gate = [f'the other points count once "{closed[0]}" passes'] if closed and earned else []
        return self.notes + gate

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td style='vertical-align:top'>{_MARKS[r.status]}&nbsp;{r.status}</td>"
            f"<td style='text-align:left'>{html.escape(r.name)}"
            + (
                f"<pre style='margin:2px 0;white-space:pre-wrap'>{html.escape(r.message)}</pre>"
                if r.message
                else ""
            )
            + "</td></tr>"
            for r in self.results
        )
        hint = f"<p><b>Hint.</b> {html.escape(self.hint)}</p>" if self.hint else ""
        notes = "".join(f"<p>Note: {html.escape(note)}</p>" for note in self._all_notes())
        return f"<div><b>{html.escape(self.headline)}</b><table>{rows}</table>{hint}{notes}</div>"

    def picture(self):
        """A view of the learner's own run: who waits for whom, or the timeline; None if there is
        none.
        """
        try:
            from .. import viz

            if self.graph is not None:
                return viz.wait_for(self.graph)
            return viz.show(self.run) if self.run is not None else None
        except Exception:  # a report without its picture is still a report
            return None

    def show(self) -> None:
        """Display the report in a notebook, once per cell, with the picture unless all is well."""
        shell = _shell()
        if shell is None or self.shown_in == shell.execution_count:
            return
        from IPython.display import display

        self.shown_in = shell.execution_count
        display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)
        view = None if self.passed else self.picture()
        if view is not None:
            display(view)

    _ipython_display_ = show


_MARKS = {PASSED: "&#10003;", FAILED: "&#10007;", NOT_RUN: "&ndash;", UNGRADED: "?"}


def _shell():
    """The running IPython, without importing it: a script has none."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None else None


def _number(x: float) -> float:
    """4 rather than 4.0, and no digits that only rounding made."""
    x = round(x, 2)
    return int(x) if x == int(x) else x
