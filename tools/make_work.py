"""Copy exercises to work/, where you answer them. A file that is there already is never touched.

    python tools/make_work.py [NAMES]        default: every exercise

A newer release may have changed an exercise: delete or rename your copy to get the new one.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def copy(name, root=ROOT):
    """Copy one exercise, such as "00_start"; returns "copied" or "kept"."""
    target = root / "work" / f"{name}.ipynb"
    target.parent.mkdir(exist_ok=True)
    source = root / "exercises" / f"{name}.ipynb"
    try:
        with open(target, "xb") as file:  # "x" refuses an existing file, also one made just now
            file.write(source.read_bytes())
    except FileExistsError:
        return "kept"
    return "copied"


def main():
    known = sorted(path.stem for path in (ROOT / "exercises").glob("*.ipynb"))
    parser = argparse.ArgumentParser(description="Copy exercises to work/.")
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(known)}")
    names = parser.parse_args().names or known
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no exercise {unknown[0]!r}; there are: {', '.join(known)}")
    for name in names:
        print(f"work/{name}.ipynb: {copy(name)}")


if __name__ == "__main__":
    main()
