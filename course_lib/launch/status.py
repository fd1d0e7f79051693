"""What a notebook shows while a run lasts: elapsed seconds and each rank's newest line, gone when
it is over.

It appears only after two seconds, and never where outputs are compared (LOCKSTEP_STATUS=0).
"""

from __future__ import annotations

import html
import os
import time
from pathlib import Path

from .errors import in_notebook
from .lines import read_lines

QUIET = 2.0  # seconds before anything is shown
EVERY = 0.5  # seconds between two updates
DONE = "The run is over."


class Status:
    def __init__(self, folder: Path, world_size: int):
        self.folder, self.world_size = folder, world_size
        self.began = self.shown = time.monotonic()
        self.handle = None
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
        body = {"text/html": f"<pre>{html.escape(chr(10).join(text))}</pre>", "text/plain": DONE}
        from IPython.display import display

        if self.handle is None:
            self.handle = display(body, raw=True, display_id=True)
        else:
            self.handle.update(body, raw=True)

    def close(self) -> None:
        """Empty the status: what is stored in the notebook does not tell how long the run took."""
        if self.handle is not None:
            self.handle.update({"text/html": "", "text/plain": DONE}, raw=True)
