"""`predict("question", answer)`: the learner's guess before the run, beside the result after it."""

from __future__ import annotations

import contextlib
import hashlib
from fractions import Fraction
from html import escape

import anywidget
import traitlets
from IPython.core.getipython import get_ipython
from IPython.display import display

from .view import engine, show_pair

# Guesses that no result has answered yet, by question. A click into the box selects its cell, so
# that people run it once more on their way to the next: the guess must survive that.
WAITING: dict[str, str] = {}
BOX = "border-left:3px solid #0072b2;padding:2px 10px"


class Outcome:
    """The sentence that sets a guess beside the result."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<div style="{BOX}">{escape(self.text)}</div>'


class Predict(anywidget.AnyWidget):
    """A question with an input and a Commit button. The answer stays in Python until a commit.

    `result(value)` tells an answer that only the run knows; `reveal()` shows it without a commit.
    """

    _esm = engine("player.js", "draw.js", "predict.js")
    _css = engine("viz.css")
    question = traitlets.Unicode().tag(sync=True)
    choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    attempt = traitlets.List([0, ""]).tag(sync=True)  # number of the attempt, what was entered
    guess = traitlets.Unicode("").tag(sync=True)
    closed = traitlets.Bool(False).tag(sync=True)
    verdict = traitlets.Unicode("").tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)

    def __init__(self, question: str, answer=None, choices=None):
        options = [str(choice) for choice in choices or ()]
        if options and answer is not None and str(answer) not in options:
            raise ValueError(f"answer={answer!r}: must be one of choices {options}")
        name = hashlib.sha256(repr((question, options)).encode()).hexdigest()[:12]
        super().__init__(question=question, choices=options, picture=name)
        self._answer, self._cell = answer, None
        self.observe(self._on_attempt, "attempt")
        with contextlib.suppress(KeyError, ValueError):  # none, or not a guess at this answer
            self.commit(WAITING[name])

    def commit(self, entered: str) -> None:
        """Take a guess, once. ValueError when it is not a number (or not one of the choices)."""
        entered = str(entered).strip()
        if self.closed:
            raise ValueError("a guess is committed once")
        if self.choices and entered not in self.choices:
            raise ValueError("choose one of the answers first")
        if not self.choices and not isinstance(self._answer, str):
            _number(entered)
        with self.hold_sync():
            self.guess, self.closed, self.error = entered, True, ""
            self.verdict = self._sentence()
        WAITING[self.picture] = entered

    def result(self, value) -> Outcome:
        """Tell the answer, which the run has found; shows the guess beside it."""
        self._answer = value
        return self.reveal()

    def reveal(self) -> Outcome:
        """Close the question, and show the guess beside the answer."""
        if self._answer is None:
            raise ValueError("answer=None: there is no answer yet; give it by .result(value)")
        WAITING.pop(self.picture, None)
        with self.hold_sync():
            self.closed, self.error, self.verdict = True, "", self._sentence()
        return Outcome(self.verdict)

    def _on_attempt(self, change) -> None:
        try:
            self.commit(change["new"][1])
        except ValueError as error:
            self.error = str(error)

    def _sentence(self) -> str:
        if self._answer is None:
            return f"You say {self.guess}. The run will tell."
        answer = _text(self._answer)
        if not self.guess:
            return f"The answer is {answer}."
        said = f"You say {self.guess}, the answer is {answer}"
        if self.choices or isinstance(self._answer, str):
            return f"{said}: {'right' if self.guess == str(self._answer) else 'not the same'}."
        off = float(_number(self.guess)) - float(self._answer)
        if abs(off) <= 1e-3 * abs(float(self._answer)) * isinstance(self._answer, float):
            off = 0.0
        how = f"{_text(abs(off))} too {'high' if off > 0 else 'low'}"
        return f"{said}: {how if off else 'right'}."

    def __repr__(self) -> str:
        options = f" ({', '.join(self.choices)})" if self.choices else ""
        return f"Predict: {self.question}{options} {self.verdict or 'No guess yet.'}"

    def _ipython_display_(self) -> None:
        shell = get_ipython()
        cell = shell.execution_count if shell else None
        if cell is not None and cell == self._cell:
            return  # `predict` has shown it in this cell already
        self._cell = cell
        options = f" ({escape(', '.join(self.choices))})" if self.choices else ""
        show_pair(self, f'<div data-lockstep="{self.picture}" class="lockstep-still" '
                        f'style="{BOX}"><b>Predict:</b> {escape(self.question)}{options}</div>')


def _number(text: str) -> Fraction:
    """A number as people write it: 24, 1,024, 1.5, 3/4, 2e9."""
    try:
        return Fraction(text.replace(",", "").replace(" ", ""))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a number, such as 24, 1.5 or 3/4") from None


def _text(value) -> str:
    """A value as a sentence prints it."""
    if isinstance(value, float):
        return f"{value:,.4f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else str(value)


def predict(question: str, answer=None, choices=None) -> Predict:
    """Ask before the run: show the question, return it for `.reveal()` or `.result(value)`.

    answer: a number or text; None when only the run knows it. choices: the answers to choose from.
    """
    asked = Predict(question, answer, choices)
    if get_ipython() is not None:
        display(asked)
    return asked
