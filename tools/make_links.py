"""Write the last cell of each lecture and each solution: where to go from here.

    python tools/make_links.py [--check]

The way is that of the map in course_lib/progress.py. What exists is a link; what does not is named
without one, so no link dangles. The cell has the id `links`; nothing else of a notebook changes.
--check writes nothing, and fails if a notebook would change.
"""

import argparse
import sys
from pathlib import Path

import nbformat

from course_lib.progress import LECTURES

ROOT = Path(__file__).resolve().parent.parent
CELL = "links"


def find(root, folder, lecture):
    """The notebook of a lecture in a folder, or None."""
    return next(iter(sorted((root / folder).glob(f"{lecture.tag}_*.ipynb"))), None)


def link(path, words):
    """A link to a notebook of another or the same folder; the words alone if there is none."""
    if path is None:
        return f"{words} (to come)"
    return f"[{words}](../{path.parent.name}/{path.name})"


def of_lecture(lecture, root=ROOT):
    """Text of the cell that ends a lecture: its exercise, the lecture before and the one after."""
    number = LECTURES.index(lecture)
    lines = []
    if solution := find(root, "solutions", lecture):  # tools/make_exercises.py makes the other
        lines.append(f"Exercise {lecture.tag}: answer in [your copy](../work/{solution.name}), "
                     "which `make lab` makes of "
                     f"[the original](../exercises/{solution.name}).")
    if number + 1 < len(LECTURES):
        lines.append(f"Next: {to(LECTURES[number + 1], root)}.")
    if number:
        lines.append(f"Before: {to(LECTURES[number - 1], root)}.")
    if start := find(root, "notebooks", LECTURES[0]):
        lines.append(f"The map of the course: `progress()`, or {link(start, 'the start')}.")
    return "\n\n".join(lines)


def of_exercise(lecture, root=ROOT):
    """Text of the cell that ends an exercise. Its copy in work/ has the same neighbours."""
    lines = [f"Back: {to(lecture, root)}."]
    after = LECTURES[LECTURES.index(lecture) + 1 :]
    lines += [f"Next: {to(other, root)}." for other in after[:1]]
    return "\n\n".join(lines)


def to(lecture, root):
    return link(find(root, "notebooks", lecture), f"lecture {lecture.tag}, {lecture.title}")


def with_cell(text, source):
    """The notebook's text with `source` in its last cell, which carries the id `links`."""
    notebook = nbformat.reads(text, as_version=nbformat.NO_CONVERT)
    notebook.cells = [cell for cell in notebook.cells if cell.get("id") != CELL]
    cell = nbformat.v4.new_markdown_cell(source)
    cell.id = CELL
    notebook.cells.append(cell)
    return nbformat.writes(notebook) + "\n"


def plans(root=ROOT):
    """(path, the text that its last cell must have) of each lecture and each solution."""
    for lecture in LECTURES:
        for folder, text in (("notebooks", of_lecture), ("solutions", of_exercise)):
            if path := find(root, folder, lecture):
                yield path, text(lecture, root)


def make(root=ROOT, check=False):
    """Paths of the notebooks that changed, or with `check` would change."""
    changed = []
    for path, source in plans(root):
        old = path.read_text(encoding="utf-8")
        new = with_cell(old, source)
        if new != old:
            changed.append(path)
            if not check:
                path.write_text(new, encoding="utf-8")
    return changed


def main():
    parser = argparse.ArgumentParser(description="Write the last cell of each notebook.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a change")
    check = parser.parse_args().check
    changed = make(check=check)
    for path in changed:
        print(f"{path.parent.name}/{path.name}: {'differs' if check else 'written'}")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
