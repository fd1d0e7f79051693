"""%%ranks: the cell's text runs in real ranks, with the notebook's names, and errors name the
cell's lines.
"""

import os

import pytest
from ipykernel.compiler import XCachingCompiler
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from course_lib import magic
from course_lib.launch.errors import RankFailure


@pytest.fixture(scope="module")
def shell():
    """IPython as in a kernel, without the status line that slow runs show."""
    os.environ["LOCKSTEP_STATUS"] = "0"
    shell = InteractiveShell.instance()
    shell.compile = XCachingCompiler()  # as in a notebook's kernel, where cells have file names
    magic.load_ipython_extension(shell)
    yield shell
    magic.unload_ipython_extension(shell)
    InteractiveShell.clear_instance()
    del os.environ["LOCKSTEP_STATUS"]


def run(shell, cell):
    """Run a whole cell as a notebook does; raise what it raised."""
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    return result


def test_prints_and_the_last_value_come_in_rank_order(shell, capsys):
    run(shell, "%%ranks 3\nprint('hello from', rank)\nrank * 10 + world_size")
    assert capsys.readouterr().out.splitlines() == [
        "[rank 0] hello from 0",
        "[rank 0] 3",
        "[rank 1] hello from 1",
        "[rank 1] 13",
        "[rank 2] hello from 2",
        "[rank 2] 23",
    ]


def test_collectives_torch_and_the_notebooks_names_are_there(shell, capsys):
    run(
        shell,
        "import math\nscale = 2.0\ndef twice(x):\n    return helper(x) * scale\ndef helper(x):\n   "
        " return x\n"
        "class Box:\n    size = 3\nunused = math.sin",
    )
    run(
        shell,
        "%%ranks 2 kept\nx = torch.full((2,), twice(float(rank + 1)) + Box.size + "
        "math.floor(0.5))\n"
        "all_reduce(x, group)\nx",
    )
    assert capsys.readouterr().out.splitlines() == [
        "[rank 0] tensor([12., 12.])",
        "[rank 1] tensor([12., 12.])",
    ]
    assert shell.user_ns["kept"].trace.bytes_sent(0) == 8


def test_a_semicolon_or_none_prints_nothing(shell, capsys):
    run(shell, "%%ranks 2\nrank;")
    run(shell, "%%ranks 2\nNone")
    run(shell, "%%ranks 2\nx = rank")
    assert capsys.readouterr().out == ""


def test_names_of_the_rank_win_over_the_notebooks(shell, capsys):
    run(shell, "rank, group, world_size = 'mine', 3, 77")
    run(shell, "%%ranks 2\nrank, group.size, world_size")
    assert capsys.readouterr().out.splitlines() == ["[rank 0] (0, 2, 2)", "[rank 1] (1, 2, 2)"]


def test_a_name_that_the_cell_makes_itself_need_not_travel(shell, capsys):
    run(shell, "import threading\nhandle = threading.Lock()\ncount = 5")
    run(shell, "%%ranks 1\nhandle = 3\ncount = count + handle\ncount")
    assert capsys.readouterr().out == "[rank 0] 8\n"
    assert shell.user_ns["count"] == 5
    with pytest.raises(UsageError, match="handle .* cannot be sent to the ranks"):
        magic.run_cell(shell, "1", "print(handle)")


def test_an_error_names_the_line_of_the_cell(shell, capsys):
    cell = "%%ranks 2\nx = 1\nif rank == 1:\n    raise ValueError('no')"
    number = shell.execution_count
    with pytest.raises(RankFailure) as caught:
        run(shell, cell)
    text = str(caught.value)
    assert text.startswith("rank 1: ValueError: no")
    assert f"In[{number}] line 4: raise ValueError('no')" in text
    shown = capsys.readouterr().out
    assert "run_cell" not in shown and len(shown.splitlines()) < 8


def test_a_deadlock_is_told_as_ever(shell):
    with pytest.raises(RankFailure, match="deadlock: 0 -> 1 -> 0") as caught:
        run(shell, "%%ranks 2\ngroup.send(torch.ones(2), 1 - rank)")
    assert "line 2: group.send" in str(caught.value)


@pytest.mark.parametrize("line", ["", "0", "-1", "two", "2 3", "2 a b"])
def test_a_wrong_line_is_explained(shell, line):
    with pytest.raises(UsageError, match="%%ranks"):
        magic.run_cell(shell, line, "rank")


def test_wrong_python_is_a_syntax_error_of_the_cell(shell):
    with pytest.raises(SyntaxError):
        magic.run_cell(shell, "2", "x = = 1")


def test_names_that_a_text_reads_and_binds():
    read, bound = magic.global_names(
        "import os\ndef f(a, b=c):\n    d = a + e\n    return len(d)\ng = f(h)\nfor i in j: k = i"
    )
    assert {"c", "e", "f", "h", "j", "i"} == read
    assert {"os", "f", "g", "i", "k"} == bound
    assert magic.global_names("def f():\n    global z\n    z = y")[1] == {"f", "z"}
