"""Failed runs, in words: which rank, which call, the learner's line. The text is the whole message
for people.
"""

from __future__ import annotations

import importlib
import linecache
import re
import sys
from collections.abc import Callable

Site = tuple[str, int]
# Called with the error before it is raised: notebooks show its picture
on_failure: list[Callable] = []


class RankFailure(RuntimeError):
    """A run of ranks that failed; no result of it is returned. `graph` is the wait-for picture's
    data, or None.
    """

    def __init__(self, text: str, graph: dict | None = None, rank: int | None = None,
                 kind: str = ""):
        super().__init__(text)
        self.graph, self.rank, self.kind = graph, rank, kind
        self.lines: list[tuple[int, str]] = []

    def _render_traceback_(self):
        """IPython shows this instead of the launcher's own frames."""
        name, text = type(self).__name__, str(self)
        said = text.lower().startswith(name.lower() + ":")
        return [text[0].upper() + text[1:] if said else f"{name}: {text}"]


class Deadlock(RankFailure):
    """Ranks wait for each other, or for a rank that has finished; nobody can move."""


class CallMismatch(RankFailure):
    """Ranks disagree about their k-th call, or about the size or dtype of a message."""


class RankTimeout(RankFailure):
    """The time limit came first: an endless loop, or calls that the board does not see."""


class RankDied(RankFailure):
    """A process ended without a Python exception."""


def announce(failure: RankFailure) -> None:
    """Tell everybody who wants to know, before it is raised. A notebook gets its picture."""
    if in_notebook():
        importlib.import_module("course_lib.viz")  # registers itself; loaded where it is needed
    for show in on_failure:
        show(failure)


def readable(file: str) -> str:
    """The name of a learner's file as a reader knows it: `In[5]` for a cell, else the path's last
    part.

    Cell files carry a process id, which must not reach stored outputs.
    """
    shell = _shell()
    if shell is not None:
        name = shell.compile.format_code_name(file)
        if name is not None and name[0] == "Cell":
            return name[1].replace(" ", "")
    return re.split(r"[/\\]", file)[-1] if file else ""


def place(site: Site) -> str:
    """"In[5] line 3: all_reduce(x, group)", or as much of it as is known."""
    file, line = site
    if not file:
        return "a line that is not known"
    text = linecache.getline(file, line).strip()
    return f"{readable(file)} line {line}" + (f": {text}" if text else "")


def argument(site: Site) -> str:
    """The text of the first argument of the call on that line, such as `a` in `all_reduce(a,
    group)`.
    """
    import ast

    text = linecache.getline(*site).strip()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return ast.unparse(calls[0].args[0]) if calls else ""


def crossing(calls: dict[int, list[tuple]]) -> str | None:
    """A warning when two ranks made equal-looking calls in another order, judged by the learner's
    lines.

    `calls[rank]` lists (communicator, number, op, site). At the first call where two ranks stand on
    different lines, each must name at another call what the other named there. The same line in a
    loop stays invisible. """
    by_number: dict[tuple, dict[int, tuple]] = {}
    for rank, made in calls.items():
        for communicator, number, op, site in made:
            by_number.setdefault((communicator, number), {})[rank] = (op, site)
    for (communicator, number), said in by_number.items():
        ranks = sorted(said)
        for other in ranks[1:]:
            (op, mine), (_, theirs) = said[ranks[0]], said[other]
            if mine == theirs or not _crossed(calls, communicator, ranks[0], other, mine, theirs):
                continue
            return (f"call #{number} may be crossed: rank {ranks[0]} calls {op} on {_named(mine)}, "
                    f"rank {other} on {_named(theirs)}. Both look alike, so nothing stopped them; "
                    "give the calls "
                    "a name= and different names become an error")
    return None


def _crossed(calls, communicator, first, second, mine, theirs) -> bool:
    def lines(rank):
        return [site for name, _, _, site in calls[rank] if name == communicator]

    def names(rank):
        return [argument(site) for site in lines(rank)]

    same_lines = theirs in lines(first) and mine in lines(second)
    a, b = argument(mine), argument(theirs)
    return same_lines or bool(a and b and a != b and b in names(first) and a in names(second))


def _named(site: Site) -> str:
    name = argument(site)
    return (f"`{name}` " if name else "") + f"({readable(site[0])} line {site[1]})"


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this."""
    return _shell() is not None


def _shell():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if hasattr(getattr(shell, "compile", None), "format_code_name") else None
