"""Draw the picture of README.md: a ring all-reduce of four real processes, as `show(run)` has it.

    python tools/make_picture.py          writes docs/timeline.svg
"""

from pathlib import Path

import torch

from course_lib import run_ranks
from course_lib.collectives import ring_all_reduce
from course_lib.viz import show

TARGET = Path(__file__).resolve().parent.parent / "docs" / "timeline.svg"


def total(group):
    """Every rank holds its own number eight times before, and the sum of all after."""
    return ring_all_reduce(torch.full((8,), float(group.rank + 1)), group)


def main():
    run = run_ranks(total, 4)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(show(run).still() + "\n", encoding="utf-8")
    print(f"{TARGET.parent.name}/{TARGET.name} shows {show(run)!r}")


if __name__ == "__main__":
    main()
