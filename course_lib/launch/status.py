"""What a notebook shows while a run lasts: elapsed seconds and each rank's newest line, gone when
it is over.

It appears only after two seconds, and never where outputs are compared (LOCKSTEP_STATUS=0).
"""

from __future__ import annotations

import html
import os
import sys
import time
from pathlib import Path

from .errors import in_notebook
from .lines import read_lines

QUIET = 2.0  # seconds before anything is shown
EVERY = 0.5  # seconds between two updates


class Status:
    def __init__(self, folder: Path, world_size: int):
        self.folder, self.world_size = folder, world_size
        self.began = self.shown = time.monotonic()
        self.widget = None
        self.wanted = in_notebook() and os.environ.get("LOCKSTEP_STATUS") != "0"

    def tick(self) -> None:
        """Called often by the launcher; shows or updates the status where it is due."""
        now = time.monotonic()
        if not self.wanted or now - self.began < QUIET or now - self.shown < EVERY:
            return
        self.shown = now
        text = [f"{self.world_size} ranks running for {now - self.began:.0f} s"]
        for rank in range(self.world_size):
            if newest := read_lines(self.folder, rank)[-1:]:
                text.append(f"[rank {rank}] {newest[0][:120]}")
        body = f"<pre>{html.escape(chr(10).join(text))}</pre>"
        if self.widget is None:
            import ipywidgets
            from IPython.display import display

            self.widget = ipywidgets.HTML(body)
            display(self.widget)
        else:
            self.widget.value = body

    def close(self) -> None:
        """Take the status away and leave what the cell had printed."""
        if self.widget is not None:
            self.widget.close()
            sys.stdout.flush()
