"""The checking process of `course_lib.grade`: takes answers as text on its input, gives reports
back.

    python -m course_lib.grade_child FD

It runs the checks of the installed course. The learner's text runs only in the rank processes that
the checks start, and they never see the word, sent on the input, without which no report is
believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import sys


def main(descriptor: int) -> None:
    """Answer one request a line, as JSON, until the input ends. Every reply carries the first
    line's word.
    """
    os.set_inheritable(descriptor, False)
    _keep_orphans()
    word = sys.stdin.readline().strip()
    requests, sys.stdin = sys.stdin, open(os.devnull)  # noqa: SIM115
    with open(descriptor, "w") as replies:

        def reply(**content):
            replies.write(json.dumps({"word": word, **content}) + "\n")
            replies.flush()

        reply(ready=_warm_up())
        for line in requests:
            reply(report=_grade(**json.loads(line)))


def _grade(name: str, source: list, seed: int, limit: float) -> dict:
    from .checks import TASKS
    from .checks.machinery import judge
    from .grade_submission import Submission

    submission = Submission(name, tuple((file, first, text) for file, first, text in source))
    return judge(TASKS[name], submission, seed, limit).as_dict()


def _warm_up() -> str:
    """Start the first rank, so that no task's limit pays for it. "" or what is in the way."""
    from . import checks, run_ranks

    try:
        run_ranks(_nothing, 1)
        return "" if checks.TASKS else "no task is known"
    except Exception as trouble:
        return f"{type(trouble).__name__}: {trouble}"


def _nothing(group) -> None:
    return None


def _keep_orphans() -> None:
    """On Linux: processes whose parent has ended become children of this one, where they are found
    and ended.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


if __name__ == "__main__":
    main(int(sys.argv[1]))
