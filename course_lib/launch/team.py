"""The parent's side of one run: the processes, what they report, and what their silence means."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from multiprocessing.connection import wait
from pathlib import Path

from ..board import RETURNED, STARTING, Board
from ..waitfor import explain
from . import pickling, pool, verdict
from .child import Job
from .errors import CallMismatch, Deadlock, RankDied, RankFailure, RankTimeout, place, readable
from .lines import read_lines

LOOK = 0.05  # seconds between two looks at the board
GRACE = 0.2  # seconds to collect reports after the first failure, before the headline is chosen
SETTLE = 0.5  # seconds for the others to get stuck too, once some are
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (\S+)')


class Team:
    """`world_size` rank processes working on one job. Use as a context manager: leaving it ends
    them all.
    """

    def __init__(self, job: Job, start: str):
        self.job, self.world_size = job, job.world_size
        self.folder = Path(job.folder)
        self.board = Board(self.folder / "board", job.world_size, create=True)
        self.members = pool.start_processes(job.world_size, start)
        self.reports: dict[int, dict] = {}
        for rank, (_, connection) in enumerate(self.members):
            job.rank = rank
            with contextlib.suppress(OSError):  # a dead spare is noticed by its sentinel
                connection.send_bytes(pickling.dumps(job))

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *error) -> None:
        """End every process, whatever it is doing: inside gloo only SIGKILL is heard."""
        whole = not error[0]
        for process, connection in self.members:
            with contextlib.suppress(OSError):
                connection.send_bytes(b"leave") if whole else process.kill()
        for process, connection in self.members:
            process.join(1)
            if process.is_alive():
                process.kill()
                process.join()
            connection.close()
            process.close()
        self.board.close()

    def watch(self, timeout: float, tick=lambda: None) -> dict[int, dict]:
        """Wait for every rank's report; raise RankFailure as soon as the run cannot succeed."""
        deadline, suspect = time.monotonic() + timeout, None
        while len(self.reports) < self.world_size:
            self._collect(LOOK)
            tick()
            if any(report["kind"] != "result" for report in self.reports.values()):
                raise self._failure()
            path = verdict.find_stuck(self.board)
            seen = verdict.snapshot(self.board, path) if path else None
            if seen is not None and seen == suspect:
                self._settle()
                raise self._deadlock(verdict.find_stuck(self.board) or path)
            suspect = seen
            if time.monotonic() > deadline:
                raise self._timeout(timeout)
        if (differing := verdict.differing_call(self.board)) is not None:
            raise self._mismatch(*differing)
        return self.reports

    def _collect(self, patience: float) -> None:
        waiting = [r for r in range(self.world_size) if r not in self.reports]
        sources = [self.members[r][1] for r in waiting] + [self.members[r][0].sentinel
                                                           for r in waiting]
        wait(sources, patience)
        for rank in waiting:
            process, connection = self.members[rank]
            # Asked before the pipe: what it sent last is then surely there
            alive = process.is_alive()
            try:
                if connection.poll():
                    self.reports[rank] = pickling.loads(connection.recv_bytes())
                elif not alive:
                    raise EOFError
            except (EOFError, OSError):
                process.join(1)
                self.reports[rank] = {"kind": "died", "code": process.exitcode}

    # -- failures ----------------------------------------------------------------------------------

    def _failure(self) -> RankFailure:
        """The headline is the first cause; what followed from it gets a line each."""
        end = time.monotonic() + GRACE
        while time.monotonic() < end and len(self.reports) < self.world_size:
            self._collect(LOOK)
        bad = {rank: report for rank, report in self.reports.items() if report["kind"] != "result"}
        died = [rank for rank, report in bad.items() if report["kind"] == "died"]
        if died:
            return self._died(died[0])
        for rank, report in bad.items():
            if report["said"]:
                if (differing := verdict.differing_call(self.board)) is not None:
                    # The board knows what all ranks were about to do
                    return self._mismatch(*differing)
                text = _told(report["what"], report["said"])
                return CallMismatch(text + self._others(set(report["said"])), rank=rank)
        rank = min(bad, key=lambda r: bad[r]["connection"])
        report = bad[rank]
        where = place(tuple(report["site"]))
        said = f"{report['type']}: {report['text']}".removesuffix(": ")
        text = f"rank {rank}: {said}\n  at {where}"
        return RankFailure(text + self._others({rank}), rank=rank, kind=report["type"])

    def _died(self, rank: int) -> RankFailure:
        code = self.reports[rank]["code"]
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = f"was ended by signal {-code} ({signal.Signals(-code).name})"
        else:
            how = f"ended without an exception (exit code {code}), as os._exit does"
        differing = verdict.differing_call(self.board)
        text = f"rank {rank} {how}"
        if (doing := verdict.last_call(self.board, rank)) is not None:
            text += f", in or after {doing[0]} at {place(doing[1])}"
        if differing is not None:
            number, said = differing
            text += "\n" + _told(f"call #{number}", {r: (c.text, c.site) for r, c in said.items()})
        return RankDied(text + self._others({rank}), rank=rank)

    def _mismatch(self, number: int, said: dict) -> RankFailure:
        text = _told(f"call #{number}",
                     {rank: (call.text, call.site) for rank, call in said.items()})
        return CallMismatch(text + self._others(set(said)))

    def _settle(self) -> None:
        """Wait until nobody moves any more: the report then tells of all, the same each time."""
        end = time.monotonic() + SETTLE
        while verdict.moving(self.board) and time.monotonic() < end:
            self._collect(LOOK)

    def _deadlock(self, path: list) -> RankFailure:
        if (differing := verdict.differing_call(self.board)) is not None:
            return self._mismatch(*differing)
        nodes = path + [node for node in verdict.all_waiting(self.board) if node not in path]
        waiters = [verdict.waiter(self.board, node) for node in nodes
                   if verdict.next_node(self.board, node) is not None]
        stuck = explain(waiters, self.world_size, place)
        told = {int(line.split()[1]) for line in stuck.lines}
        lines = sorted(stuck.lines + self._others(told).splitlines()[1:],
                       key=lambda line: int(line.split()[1].rstrip(":")))
        text = "\n".join([stuck.header, *lines, *self._counts()])
        for waiter in waiters:
            stuck.graph["notes"].setdefault(waiter.rank, f"waits in {waiter.what}")
            if (edge := (waiter.rank, waiter.peer, waiter.what)) not in stuck.graph["edges"]:
                stuck.graph["edges"].append(edge)
        return Deadlock(text, graph=stuck.graph)

    def _counts(self) -> list[str]:
        """Which ranks made fewer collective calls, when the numbers differ among ranks that have
        returned.
        """
        counts = verdict.call_counts(self.board)
        if len(set(counts.values())) < 2 or RETURNED not in map(self.board.life, counts):
            return []
        return ["calls begun: " + ", ".join(f"rank {rank} made {n}" for rank, n in counts.items())]

    def _timeout(self, timeout: float) -> RankFailure:
        stacks = self._stacks()
        lines = [f"rank {rank} {stacks.get(rank, 'has finished')}"
                 for rank in range(self.world_size)]
        return RankTimeout(f"not finished after {timeout:g} s (timeout={timeout:g}): an endless "
                           "loop, or a call of "
                           "torch.distributed that waits for a rank that never comes\n"
                           + "\n".join(lines))

    def _others(self, told: set[int]) -> str:
        """One line for each rank that the text has not spoken of yet."""
        waiting = {node[0]: node for node in reversed(verdict.all_waiting(self.board))}
        lines = []
        for rank in range(self.world_size):
            report = self.reports.get(rank)
            if rank in told:
                continue
            if rank in waiting and report is None:
                blocked = verdict.waiter(self.board, waiting[rank])
                lines.append(f"rank {rank} waits in {blocked.what} at {place(blocked.site)}")
            elif report is None:
                lines.append(f"rank {rank} {self._stacks((rank,)).get(rank, 'was still running')}")
            elif report["kind"] == "result":
                lines.append(f"rank {rank} has finished")
            elif report["kind"] == "died":
                lines.append(f"rank {rank} ended too (exit code {report['code']})")
            elif report["connection"]:
                lines.append(f"rank {rank} lost its connection to a rank that had ended")
            else:
                first = report["text"].partition("\n")[0][:120]  # an error may say nothing
                lines.append(f"rank {rank}: {report['type']}: {first}".removesuffix(": "))
        return "".join("\n" + line for line in lines)

    def _stacks(self, ranks: tuple[int, ...] | None = None) -> dict[int, str]:
        """The learner's line on which each living rank stands, from its Python stack."""
        if not hasattr(signal, "SIGUSR1"):
            return {}
        # One that is still starting has no handler yet, and the signal would end it
        alive = [rank for rank in ranks or range(self.world_size) if rank not in self.reports
                 and self.board.life(rank) != STARTING and self.members[rank][0].is_alive()]
        for rank in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.members[rank][0].pid, signal.SIGUSR1)
        time.sleep(0.05)
        return {rank: _standing(self.folder / f"stack{rank}") for rank in alive}

    def lines(self) -> list[tuple[int, str]]:
        """(rank, text) of everything printed, in rank order."""
        return [(rank, line) for rank in range(self.world_size)
                for line in read_lines(self.folder, rank)]


def _standing(path: Path) -> str:
    from ..recorder import _SKIP

    for line in path.read_text(errors="replace").splitlines():
        frame = _FRAME.match(line)
        if frame and not frame[1].startswith(_SKIP):
            return f"is at {place((frame[1], int(frame[2])))}"
    return "was still running"


def _told(what: str, said: dict) -> str:
    """"call #3 differs: rank 0 does this (line), rank 1 that (line)"."""
    alike: dict[str, list[int]] = {}
    for rank, (text, site) in sorted(said.items()):
        where = f" ({readable(site[0])} line {site[1]})" if site[0] else ""
        alike.setdefault(text + where, []).append(rank)
    lines = [f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))} {text}"
             for text, ranks in alike.items()]
    return f"{what} differs:\n  " + "\n  ".join(lines)
