"""Lay out a folder for nbgrader from solutions/: its configuration, and source/ with one assignment
per exercise. docs/instructors.md says how to go on.

    python tools/make_source.py FOLDER [NAMES]      default: every exercise

A file that is there already is never touched.
"""

import argparse
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
CONFIG = '''"""nbgrader, set up for the exercises of the course. Made by tools/make_source.py."""

import os
from pathlib import Path

here = Path(__file__).resolve().parent
os.environ["LOCKSTEP_PROGRESS"] = str(here / ".progress.json")  # not the points of whoever grades

c = get_config()  # noqa: F821 - nbgrader defines it
c.CourseDirectory.root = str(here)
c.CourseDirectory.course_id = "lockstep"
c.ClearSolutions.code_stub = {"python": 'raise NotImplementedError("not solved yet")'}
c.Execute.timeout = 120  # seconds per cell; a check ends by itself, and says why
'''


def source(path):
    """The assignment's notebook that belongs to a solution: the same, without its notes to authors
    and its outputs.
    """
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    notebook.cells = [c for c in notebook.cells if "solution" not in c.metadata.get("tags", [])]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nbformat.writes(notebook) + "\n"


def write(target, text):
    """"made", or "kept" when there is such a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return "kept"
    return "made"


def make(folder, names):
    """{file: "made" or "kept"} of everything that the folder needs."""
    done = {"nbgrader_config.py": write(folder / "nbgrader_config.py", CONFIG)}
    for name in names:
        file = f"source/{name}/{name}.ipynb"
        done[file] = write(folder / file, source(ROOT / "solutions" / f"{name}.ipynb"))
    return done


def main():
    known = sorted(path.stem for path in (ROOT / "solutions").glob("*.ipynb"))
    parser = argparse.ArgumentParser(description="Lay out a folder for nbgrader.")
    parser.add_argument("folder", type=Path, help="outside the course, e.g. ../grading")
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(known)}")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        sys.exit(f"no exercise {unknown[0]!r}; there are: {', '.join(known)}")
    for file, outcome in make(options.folder, options.names or known).items():
        print(f"{options.folder / file}: {outcome}")


if __name__ == "__main__":
    main()
