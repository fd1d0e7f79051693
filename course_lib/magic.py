"""`%%ranks 4`: the body of a cell runs in four real processes.

    %load_ext course_lib

    %%ranks 4 run
    x = torch.full((2,), float(rank))
    all_reduce(x, group)

In the body `group`, `rank`, `world_size`, `torch` and the collectives are there, and the notebook's
own names that it uses. Prints come back in rank order, and so does the value of the last line. The
optional second word names the variable that keeps the Run.
"""

from __future__ import annotations

import ast
import builtins
import pickle
import re
import symtable
import sys
from dataclasses import dataclass

GIVEN = ("group", "rank", "world_size")


@dataclass
class CellBody:
    """The function that each rank runs: the text of a cell and the notebook's names it uses,
    pickled.
    """

    source: str
    filename: str
    names: dict[str, bytes]

    def __call__(self, group) -> None:
        import torch

        from . import collectives

        public = {
            k: v
            for k, v in vars(collectives).items()
            if callable(v)
            and not k.startswith("_")
            and getattr(v, "__module__", "").startswith(collectives.__name__)
        }
        scope = {"__name__": "__main__", "torch": torch, **public}
        scope |= {name: pickle.loads(data) for name, data in self.names.items()}
        scope |= {"group": group, "rank": group.rank, "world_size": group.size}
        body, last = split_last(self.source, self.filename)
        exec(body, scope)
        value = eval(last, scope) if last is not None else None
        if value is not None:
            print(repr(value))


def split_last(source: str, filename: str):
    """The code of everything, and of the last expression apart (None if there is none, or after a
    `;`).
    """
    tree = ast.parse(source, filename)
    last = tree.body[-1] if tree.body else None
    quiet = source.rstrip().endswith(";")
    if not isinstance(last, ast.Expr) or quiet:
        return compile(tree, filename, "exec"), None
    tree.body.pop()
    return (compile(tree, filename, "exec"), compile(ast.Expression(last.value), filename, "eval"))


def global_names(source: str, filename: str = "cell") -> tuple[set[str], set[str]]:
    """(names that the text reads from outside any function, names that it binds there). Builtins
    apart.
    """
    read, bound, tables = set(), set(), [symtable.symtable(source, filename, "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            top = table.get_type() == "module"
            if (symbol.is_assigned() or symbol.is_imported()) and (
                top or symbol.is_declared_global()
            ):
                bound.add(symbol.get_name())
            if symbol.is_referenced() and (top or symbol.is_global()):
                read.add(symbol.get_name())
    return {name for name in read if not hasattr(builtins, name)}, bound


def load_ipython_extension(ipython) -> None:
    """Called by `%load_ext course_lib`."""
    ipython.register_magic_function(
        lambda line, cell: run_cell(ipython, line, cell), "cell", "ranks"
    )


def unload_ipython_extension(ipython) -> None:
    """Called by `%unload_ext course_lib`."""
    ipython.magics_manager.magics["cell"].pop("ranks", None)


def run_cell(ipython, line: str, cell: str) -> None:
    """Run the cell's text in as many ranks as `line` says. Raises what `run_ranks` raises, without
    its frames.
    """
    from IPython.core.error import UsageError

    from . import run_ranks

    words = line.split()
    if not words or not words[0].isdigit() or int(words[0]) < 1 or len(words) > 2:
        raise UsageError(
            f"%%ranks {line}: say how many ranks, as in %%ranks 4, and then, if you "
            "want to keep it, a name for the run"
        )
    if len(words) == 2 and not words[1].isidentifier():
        raise UsageError(f"%%ranks {line}: {words[1]!r} is no name for a variable")
    filename = _register(ipython, cell)
    body = CellBody("\n" + cell, filename, _pickled(cell, ipython.user_ns))
    run = run_ranks(body, int(words[0]))
    if len(words) == 2:
        ipython.user_ns[words[1]] = run


def _register(ipython, cell: str) -> str:
    """A file name under which errors find the cell: its number, and lines counted with the magic's
    own.
    """
    number, frame = ipython.execution_count, sys._getframe()
    while frame is not None:  # IPython has counted on already; the cell's own frame knows
        name = ipython.compile.format_code_name(frame.f_code.co_filename)
        if name is not None and name[0] == "Cell":
            number = int(re.sub(r"\D", "", name[1]) or number)
            break
        frame = frame.f_back
    return ipython.compile.cache("\n" + cell, number, raw_code="%%ranks\n" + cell)


def _pickled(cell: str, scope: dict) -> dict[str, bytes]:
    """The notebook's values of the names that the cell reads. UsageError for one that cannot
    travel.
    """
    from IPython.core.error import UsageError

    from .launch.pickling import dumps

    read, bound = global_names(cell)
    packed = {}
    for name in sorted(read & set(scope) - set(GIVEN)):
        try:
            packed[name] = dumps(scope[name])
        except Exception as trouble:
            if name not in bound:  # the cell may well make its own before it reads it
                raise UsageError(
                    f"{name} (a {type(scope[name]).__name__}) cannot be sent to the ranks: "
                    f"{trouble}"
                ) from None
    return packed
