"""What ranks print: each into a file of its own, which survives a killed rank; only the last lines
are kept.

Python's own writes go through `LineFile`; the same file also takes what C++ libraries write to the
descriptor. """

from __future__ import annotations

import io
import os
import re
import threading
from pathlib import Path

LIMIT = 1 << 20  # bytes of a rank's output kept on disk before the older half is dropped
SHOWN = 200  # lines of one rank that are shown
_DROPPED = re.compile(r"^\x00(\d+)\x00\n")
_NOISE = re.compile(r"^(\[rank\d+\]:)?\[[WIEF]\d{3,4} |^$")  # C++ log lines of torch


class LineFile(io.TextIOBase):
    """A text stream into a file that never grows beyond 1 MiB: it then starts again, with a count
    of lines gone.
    """

    def __init__(self, path: Path, descriptor: int):
        self.file = open(path, "w+b",
                         buffering=0)  # noqa: SIM115 - open as long as the process lives
        os.dup2(self.file.fileno(), descriptor)
        self.lock = threading.Lock()
        self.size = self.dropped = self.lines = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raw = text.encode(errors="replace")
        with self.lock:
            if self.size + len(raw) > LIMIT:
                self._drop()
            self.file.write(raw)
            self.size += len(raw)
            self.lines += raw.count(b"\n")
        return len(text)

    def _drop(self) -> None:
        """Keep the newest lines that are shown anyway, and count the others."""
        self.file.seek(0)
        kept = self.file.read().splitlines(keepends=True)[-SHOWN:]
        self.dropped = self.lines - sum(line.endswith(b"\n") for line in kept)
        self.file.seek(0)
        self.file.truncate()
        head = b"\x00%d\x00\n" % self.dropped
        tail = b"".join(kept)[-LIMIT // 2:]
        self.file.write(head + tail)
        self.size = len(head) + len(tail)


def read_lines(folder: Path, rank: int) -> list[str]:
    """The rank's last lines, stdout before stderr, with a first line that counts what is not
    shown.
    """
    shown = []
    for name in ("out", "err"):
        path = folder / f"{name}{rank}"
        text = path.read_bytes().decode(errors="replace") if path.exists() else ""
        gone = 0
        if match := _DROPPED.match(text):
            gone, text = int(match[1]), text[match.end():]
        lines = text.splitlines()
        if name == "err":
            lines = [line for line in lines if not _NOISE.match(line)]
        gone += max(0, len(lines) - SHOWN)
        if gone:
            shown.append(f"... {gone:,} earlier lines are not shown")
        shown += lines[-SHOWN:]
    return shown
