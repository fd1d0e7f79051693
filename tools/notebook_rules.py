"""The rules that every stored notebook keeps; tests/test_notebooks.py applies them.

problems(path, kind) -> list of sentences, empty if the notebook keeps them all. `kind` is the
folder: "notebooks" (lectures, stored with outputs), "solutions" (the same, with longer cells) or
"exercises" (not run).
"""

import re
import statistics
from pathlib import Path

import nbformat

MOST_BYTES = 300 * 1024
MOST_LINES = {"notebooks": 20, "solutions": 25, "exercises": 25}
MOST_MEDIAN_LINES = 6
MOST_WORDS = 80
MOST_IGNORED_SHARE = 0.15
IGNORE = "nbval-ignore-output"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
IMAGES = ("image/png", "image/jpeg")

_FOLDERS = "work|root|home|Users|opt|tmp|mnt|srv|var/folders|private/var"
MACHINE_PATH = re.compile(rf"(?<![\w.~/+-])/(?:{_FOLDERS})/\w|\b[A-Za-z]:\\+Users\\|site-packages/")
MARKER = re.compile(r"^\s*#+\s*(?:NBVAL_|PYTEST_VALIDATE)\w+", re.MULTILINE)
FORBIDDEN = {
    "import *": re.compile(r"^\s*from .+ import \*", re.MULTILINE),
    "an installation": re.compile(r"^\s*[!%]\s*(?:pip|conda|uv|mamba)\b|-m pip\b", re.MULTILINE),
    "a path edit": re.compile(r"\bsys\.path\b|\bos\.chdir\b|^\s*%cd\b|PYTHONPATH", re.MULTILINE),
}


def tags(cell):
    return cell.metadata.get("tags", [])


def problems(path, kind):
    """Every rule that the notebook at `path` breaks, as sentences."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = _file_problems(path, notebook)
    for number, cell in enumerate(notebook.cells):
        lines = _code_problems(cell, kind) if cell.cell_type == "code" else _prose_problems(cell)
        found += [f"cell {number}: {line}" for line in lines]
    ignored = sum(IGNORE in tags(cell) for cell in code)
    if code and ignored / len(code) > MOST_IGNORED_SHARE:
        found.append(f"{ignored} of {len(code)} code cells are tagged {IGNORE}")
    if kind == "notebooks" and code:
        median = statistics.median(len(cell.source.splitlines()) for cell in code)
        if median > MOST_MEDIAN_LINES:
            found.append(f"the median code cell has {median:g} lines")
    return found


def _file_problems(path, notebook):
    found = []
    if Path(path).stat().st_size > MOST_BYTES:
        found.append(f"{Path(path).stat().st_size // 1024} KiB")
    if "widgets" in notebook.metadata:
        found.append("stores widget state (metadata.widgets)")
    kernel = notebook.metadata.get("kernelspec", {}).get("name")
    if kernel != "python3":
        found.append(f"names the kernel {kernel!r}")
    ids = [cell.get("id") for cell in notebook.cells]
    if None in ids or len(set(ids)) < len(ids):
        found.append("has cells without an id of their own")
    return found


def _code_problems(cell, kind):
    found = []
    lines = len(cell.source.splitlines())
    if lines > MOST_LINES[kind]:
        found.append(f"{lines} lines of code")
    if kind != "exercises" and cell.execution_count is None:
        found.append("never run (execution_count: null)")
    for name, pattern in FORBIDDEN.items():
        if pattern.search(cell.source):
            found.append(f"contains {name}")
    if "nbval-skip" in tags(cell) or MARKER.search(cell.source):
        found.append("steers nbval by a skip tag or a comment; only tags that check are allowed")
    for text in [cell.source, *map(_output_text, cell.outputs)]:
        match = MACHINE_PATH.search(text)
        if match:
            found.append(f"names a path of one machine: {match.group()}")
    if any(WIDGET_VIEW in output.get("data", {}) for output in cell.outputs):
        found.append("stores a widget's model id, which shows nothing when it is reopened")
    if any(output.get("name") == "stderr" for output in cell.outputs):
        found.append("stores text written to stderr")
    return found


def _output_text(output):
    """Everything of an output that people can read, as one string."""
    data = [str(value) for key, value in output.get("data", {}).items() if key not in IMAGES]
    return "\n".join([output.get("text", ""), *output.get("traceback", []), *data])


def _prose_problems(cell):
    found = []
    match = MACHINE_PATH.search(cell.source)
    if match:
        found.append(f"names a path of one machine: {match.group()}")
    longest = max(map(word_count, _folds(cell.source)))
    if longest > MOST_WORDS:
        found.append(f"{longest} words of prose")
    return found


def _folds(source):
    """The visible text of a prose cell, then the text of each folded <details>."""
    fold = re.compile(r"<details.*?</details>", re.DOTALL)
    return [fold.sub(" ", source), *fold.findall(source)]


def word_count(text):
    """Words of running text: code blocks, table rows, tags and link targets do not count."""
    text = re.sub(r"```.*?```", " ", text, flags=re.DOTALL)
    text = re.sub(r"\$\$?.+?\$\$?", " formula ", text, flags=re.DOTALL)
    text = re.sub(r"^\s*\|.*$", " ", text, flags=re.MULTILINE)
    text = re.sub(r"<[^>]+>|\]\([^)]*\)", " ", text)
    return len(re.findall(r"\S*[^\W_]\S*", text))
