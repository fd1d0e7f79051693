"""`make notebooks` stores the same bytes twice, nothing of the machine, and refuses noise."""

import json
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.make_notebooks import BadNotebook, make

SOURCES = [
    ("print('rank 0'); print('rank 1')", []),
    ("object()", []),
    ("import ipywidgets\nipywidgets.IntSlider(value=3)", []),
    ("1 + 1;", []),
    ("import json\njson.loads('{')", ["raises-exception"]),
    ("import time\ntime.time()", ["nbval-ignore-output"]),
]


def store(path, sources):
    """Write a notebook as an editor leaves it: noisy metadata, stale outputs and counts."""
    cells = [new_markdown_cell("# Title")]
    for number, (source, tags) in enumerate(sources):
        noise = {"tags": tags, "collapsed": False, "execution": {"iopub.status.busy": "now"}}
        stale = [new_output("stream", name="stdout", text="stale\n")]
        cells.append(new_code_cell(source, outputs=stale, execution_count=70, metadata=noise))
        cells[-1].id = f"step-{number}"
    notebook = new_notebook(cells=cells)
    notebook.metadata = {"widgets": {}, "kernelspec": {"name": "private", "display_name": "mine"}}
    nbformat.write(notebook, path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A noisy notebook after `make`, the path, and what the second call says."""
    path = tmp_path_factory.mktemp("made") / "sample.ipynb"
    store(path, SOURCES)
    assert make(path) == "stored"
    first = path.read_bytes()
    return json.loads(first), path, make(path), first


def test_a_second_call_changes_no_byte(made):
    _, path, second, first = made
    assert second == "unchanged"
    assert path.read_bytes() == first


def test_only_portable_metadata_is_stored(made):
    notebook = made[0]
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["metadata"] for cell in code] == [{"tags": tags} for _, tags in SOURCES]
    assert [cell["id"] for cell in code] == [f"step-{i}" for i in range(len(SOURCES))]
    assert [cell["execution_count"] for cell in code] == [1, 2, 3, 4, 5, 6]


def test_outputs_say_nothing_of_the_machine(made):
    printed, address, slider, hidden, error, _ = (
        cell["outputs"] for cell in made[0]["cells"] if cell["cell_type"] == "code"
    )
    assert printed[0]["text"] == ["rank 0\n", "rank 1\n"] and len(printed) == 1
    assert address[0]["data"]["text/plain"] == ["<object at 0xADDR>"]
    assert slider[0]["data"] == {"text/plain": ["IntSlider(value=3)"]}
    assert hidden == []
    trace = "".join(error[0]["traceback"])
    assert "JSONDecodeError" in trace and sys.prefix not in trace and sys.base_prefix not in trace


@pytest.mark.soak
def test_timings_stay_until_something_checked_changes(made, tmp_path):
    path = tmp_path / "sample.ipynb"
    path.write_bytes(made[3])
    assert make(path, check=True) == "unchanged"
    assert make(path, fresh=True, check=True) == "differs"
    path.write_text(path.read_text().replace("print('rank 1')", "print('rank 7')"))
    assert make(path) == "stored"
    assert json.loads(path.read_text())["cells"][-1]["outputs"] != made[0]["cells"][-1]["outputs"]


@pytest.mark.parametrize(
    "source, tags, words",
    [
        ("import sys\nprint('x', file=sys.stderr)", [], "writes to stderr: x"),
        ("1 / 0", [], "ZeroDivisionError"),
        ("%nope", ["nbval-ignore-output"], "a cell stops it"),
        ("pass", ["raises-exception"], "does not raise"),
        ("", [], "is empty"),
    ],
)
def test_noise_is_refused_and_the_file_stays(tmp_path, source, tags, words):
    path = tmp_path / "sample.ipynb"
    store(path, [(source, tags)])
    before = path.read_bytes()
    with pytest.raises(BadNotebook, match=words):
        make(path)
    assert path.read_bytes() == before
