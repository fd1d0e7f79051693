"""Build the course's own environment: a venv, the pinned packages, this course, a quiet JupyterLab.

    python3 tools/make_env.py [--venv .venv] [--torch-index URL]

`make` calls this; on Windows it is called by hand. It may be called again at any time: what is
already there is kept. It needs nothing but Python's standard library, and no syntax newer than
Python 3.6, so that a Python that is too old can say so.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def check_python():
    """Stop with one clear line if this Python cannot build the environment."""
    if sys.version_info < OLDEST:
        sys.exit(
            f"Lockstep needs Python {OLDEST[0]}.{OLDEST[1]} or newer; {sys.executable} is"
            f" {sys.version_info[0]}.{sys.version_info[1]}."
            " Name another one: make lab PYTHON=python3.12"
        )
    try:
        import ensurepip  # noqa: F401  Debian and Ubuntu ship it in a package of its own
        import venv  # noqa: F401
    except ImportError:
        sys.exit("This Python cannot build a venv. On Debian or Ubuntu: apt install python3-venv")


def python_of(venv):
    """The path of a venv's interpreter, on Windows and elsewhere."""
    return venv / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def install(venv, torch_index):
    """Install the pinned packages and this course, editable, with the tools that check it."""
    command = [str(python_of(venv)), "-m", "pip", "install", "--no-input"]
    command += ["-c", "constraints.txt", "-e", ".[dev]"]
    if torch_index:
        command += ["--extra-index-url", torch_index]
    elif sys.platform == "linux":
        print("A Linux laptop without a GPU saves about 4 GB with TORCH_INDEX=" + CPU_INDEX)
    subprocess.check_call(command, cwd=str(ROOT))


def quiet_lab(venv):
    """Switch off the pop-up that asks about Jupyter news when JupyterLab first opens."""
    plugin = "@jupyterlab/apputils-extension:announcements"
    command = [str(python_of(venv)), "-m", "jupyter", "labextension", "disable", plugin]
    subprocess.check_call(command, cwd=str(ROOT))


def main():
    parser = argparse.ArgumentParser(description="Build the environment of the course.")
    parser.add_argument("--venv", default=".venv", help="where (default: .venv)")
    parser.add_argument("--torch-index", default="", help="a further package index for torch")
    options = parser.parse_args()
    check_python()
    venv = ROOT / options.venv
    try:
        if not python_of(venv).exists():
            subprocess.check_call([sys.executable, "-m", "venv", "--clear", str(venv)])
        install(venv, options.torch_index)
        quiet_lab(venv)
    except subprocess.CalledProcessError as error:
        sys.exit(
            f"The environment is not complete: {' '.join(error.cmd)} failed."
            " Mend what it says above, then run the same command again."
        )
    (venv / ".installed").write_text("complete\n")


if __name__ == "__main__":
    main()
