"""Sources, rendered: `show_source(f)` with line numbers, `show_diff(f, g)` with + and - lines.

The colours are JupyterLab's own editor colours, so they fit its light and dark theme.
"""

from __future__ import annotations

import inspect
import os
from difflib import SequenceMatcher
from html import escape
from textwrap import dedent

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Literal, Name, Number, Operator

COLOURS = [  # the first token type that fits decides
    (Keyword, "keyword"), (Operator.Word, "keyword"), (Comment, "comment"), (Number, "number"),
    (Literal.String, "string"), (Name.Function, "def"), (Name.Class, "def"),
    (Name.Builtin, "builtin"), (Name.Decorator, "meta"),
]
MARKS = {"+": "background:rgba(0,158,115,0.22)", "-": "background:rgba(213,94,0,0.20)", " ": ""}
BLOCK = ("margin:0;padding:8px 0;overflow-x:auto;line-height:1.45;background:transparent;"
         "border:1px solid rgba(128,128,128,0.35);border-radius:8px")
GUTTER = "color:#7a7a7a;user-select:none"


class Source:
    """The source of one function or class: `text`, `file` and the number of its first line."""

    def __init__(self, thing):
        try:
            lines, self.first = inspect.getsourcelines(thing)
            path = inspect.getsourcefile(thing)
        except (OSError, TypeError) as error:
            raise ValueError(f"{thing!r}: has no Python source to show") from error
        self.name, self.first = thing.__name__, max(1, self.first)
        self.text = dedent("".join(lines)).rstrip("\n")
        self.file = _file_name(path)

    def lines(self) -> list[str]:
        """The highlighted source, one piece of HTML per line."""
        found = [""]
        for kind, value in PythonLexer(stripnl=False).get_tokens(self.text):
            colour = next((name for token, name in COLOURS if kind in token), "")
            for i, piece in enumerate(value.split("\n")):
                if i:
                    found.append("")
                if piece:
                    found[-1] += _coloured(piece, colour)
        return found[:-1] if not found[-1] else found

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        lines = self.lines()
        last = self.first + len(lines) - 1
        rows = [_row(f"{self.first + i:>4} ", line) for i, line in enumerate(lines)]
        return _block(f"{self.file}, lines {self.first} to {last}", rows)


class Diff:
    """Two sources, line by line: common lines, only in the first (-), only in the second (+)."""

    def __init__(self, before, after):
        self.before, self.after = Source(before), Source(after)
        self.entries = list(self._compare())  # (mark, plain line, highlighted line)

    def _compare(self):
        old, new = self.before.text.split("\n"), self.after.text.split("\n")
        old_html, new_html = self.before.lines(), self.after.lines()
        for verb, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if verb == "equal":
                yield from zip(" " * (d - c), new[c:d], new_html[c:d], strict=True)
                continue
            yield from zip("-" * (b - a), old[a:b], old_html[a:b], strict=True)
            yield from zip("+" * (d - c), new[c:d], new_html[c:d], strict=True)

    def __repr__(self) -> str:
        return "\n".join(f"{mark} {line}".rstrip() for mark, line, _ in self.entries)

    def _repr_html_(self) -> str:
        head = (f"− {self.before.name} ({self.before.file})   "
                f"+ {self.after.name} ({self.after.file})")
        signs = {"-": "−", "+": "+", " ": " "}
        return _block(head, [_row(f" {signs[mark]}  ", line, MARKS[mark])
                             for mark, _, line in self.entries])


def _coloured(piece: str, colour: str) -> str:
    if not colour:
        return escape(piece)
    weight = ";font-weight:bold" if colour == "keyword" else ""
    style = f"color:var(--jp-mirror-editor-{colour}-color){weight}"
    return f'<span style="{style}">{escape(piece)}</span>'


def _row(gutter: str, line: str, style: str = "") -> str:
    return (f'<div style="min-width:max-content;padding:0 8px;{style}">'
            f'<span style="{GUTTER}">{gutter}</span>{line}</div>')


def _block(head: str, rows: list[str]) -> str:
    return (f'<div style="color:#7a7a7a;font-size:12px;margin:4px 0;white-space:pre-wrap">'
            f'{escape(head)}</div><pre style="{BLOCK}">{"".join(rows)}</pre>')


def _file_name(path: str) -> str:
    """The path from the course's package on, "In[5]" for a cell, else the file's own name."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    inside = os.path.relpath(os.path.abspath(path), root)
    if inside.startswith("course_lib"):
        return inside.replace(os.sep, "/")
    from ..launch.errors import readable

    return readable(path)


def show_source(thing) -> Source:
    """The source of a function or class, with its file and line numbers. ValueError without one."""
    return Source(inspect.unwrap(thing))


def show_diff(before, after) -> Diff:
    """What `after` adds to `before` (+) and leaves out of it (-): two functions or classes."""
    return Diff(inspect.unwrap(before), inspect.unwrap(after))
