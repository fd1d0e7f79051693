"""A submission's function, as the checks see it: text that only rank processes execute.

The checking process never runs a line of the learner's: it ships the text, and `load` turns it into
a function inside a rank, under an audit hook that refuses what no answer needs. The hook stops
tricks and accidents. Code that means harm can get around it with ctypes, so an exam of strangers
belongs in a container.
"""

from __future__ import annotations

import linecache
import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFUSED = {
    "os.fork",
    "os.forkpty",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.kill",
    "os.killpg",
    "os.startfile",
    "pty.spawn",
    "subprocess.Popen",
    "signal.pthread_kill",
    "socket.connect",
    "socket.getaddrinfo",
}
CHANGES = {
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.truncate",
    "os.link",
    "os.symlink",
    "os.chmod",
    "shutil.rmtree",
    "shutil.move",
}
HIDDEN = ("solutions", "tests")  # folders of the course that no answer reads


class NoAnswer(Exception):
    """The text ran, and there is no function of the task's name."""


class Refused(PermissionError):
    """The answer tried something that a graded function may not do."""


@dataclass(frozen=True)
class Submission:
    """Passed to a check in the place of a function. `source` lists (file name, first line,
    text).
    """

    name: str
    source: tuple[tuple[str, int, str], ...]

    def as_payload(self):
        """What checks/machinery.py ships to the ranks: a loader, and bytes without any code
        objects.
        """
        for file, first, text in self.source:  # so that messages can quote the learner's line
            known = linecache.cache.get(file, (0, None, [], file))[2]
            lines = known + ["\n"] * (first - 1 + text.count("\n") + 1 - len(known))
            lines[first - 1 : first + text.count("\n")] = [line + "\n" for line in text.split("\n")]
            linecache.cache[file] = (len(lines), None, lines, file)
        return load, pickle.dumps((self.name, self.source))


def load(payload: bytes):
    """In a rank: run the learner's definitions and return the function.

    A statement that raises is passed over, as a notebook's next cell would run too; NoAnswer when
    that leaves no function, with the first error's words.
    """
    name, source = pickle.loads(payload)
    sys.addaudithook(_guard)
    scope, first_error = {"__name__": "__main__"}, None
    for file, first, text in source:
        try:
            exec(compile("\n" * (first - 1) + text, file, "exec"), scope)
        except Exception as error:
            first_error = first_error or error
    function = scope.get(name)
    if not callable(function):
        raise NoAnswer(
            f"no function {name} came out of the cells"
            + (
                f"; the first error was {type(first_error).__name__}: {first_error}"
                if first_error
                else ""
            )
        )
    return function


def _guard(event: str, args: tuple) -> None:
    if event in REFUSED:
        raise Refused(f"{event} is not allowed while grading")
    if event == "open":
        path, mode, flags = args
        writes = bool((flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        _guard_path(path, writes or any(c in (mode or "") for c in "wax+"))
    elif event in ("os.listdir", "os.scandir"):
        _guard_path(args[0], False)
    elif event in CHANGES:
        for path in args[:2]:
            _guard_path(path, True)


def _guard_path(path, writes: bool) -> None:
    """Refuse the hidden folders of the course, and any change inside the course."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    where = os.path.realpath(os.fsdecode(path))
    inside = os.path.relpath(where, ROOT).split(os.sep)
    if inside[0] == "..":
        return
    if inside[0] in HIDDEN:
        raise Refused(f"{inside[0]}/ is closed while grading")
    if writes:
        raise Refused("a graded function changes no file of the course")
