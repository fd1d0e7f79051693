"""Draw the pictures of README.md: a ring all-reduce of four real processes, as `show(run)` has it,
and a zero-bubble pipeline above 1F1B, as `explore_pipeline` has them.

    python tools/make_picture.py          writes docs/timeline.svg and docs/pipeline.svg
"""

from pathlib import Path

import torch

from course_lib import run_ranks
from course_lib.collectives import ring_all_reduce
from course_lib.viz import explore_pipeline, show

DOCS = Path(__file__).resolve().parent.parent / "docs"


def total(group):
    """Every rank holds its own number eight times before, and the sum of all after."""
    return ring_all_reduce(torch.full((8,), float(group.rank + 1)), group)


def main():
    run = run_ranks(total, 4)
    DOCS.mkdir(exist_ok=True)
    views = {"timeline": show(run), "pipeline": explore_pipeline("zb_h1", compare="1f1b").view}
    for name, view in views.items():
        (DOCS / f"{name}.svg").write_text(view.still() + "\n", encoding="utf-8")
        print(f"{DOCS.name}/{name}.svg shows {view!r}")


if __name__ == "__main__":
    main()
