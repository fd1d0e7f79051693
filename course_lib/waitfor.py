"""Who waits for whom: a deadlock in words and as a picture, alike for a real run and a replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .trace import MAIN, SENDS


@dataclass(frozen=True)
class Waiter:
    """One blocked stream: in what call it stands, and which stream of which rank it waits for."""

    rank: int
    what: str  # "send to rank 1", see `doing`
    peer: int
    stream: str = MAIN
    peer_stream: str = MAIN
    site: tuple[str, int] = ("", 0)  # file and line of the learner's call


@dataclass(frozen=True)
class Stuck:
    """A deadlock: a header, one line per blocked stream, and the data of `viz.wait_for`."""

    header: str
    lines: list[str]
    graph: dict

    def __str__(self) -> str:
        return "\n".join([self.header, *self.lines])


def doing(kind: str, peer: int, call: str = "") -> str:
    """Words for a blocked call: "send to rank 1", "recv from rank 2, within all_reduce #3".

    `kind` is send, isend, recv or irecv; a wait for an isend is in the same words as a send.
    """
    words = f"send to rank {peer}" if kind in SENDS else f"recv from rank {peer}"
    return f"{words}, within {call}" if call else words


def file_and_line(site: tuple[str, int]) -> str:
    """`site` as "file:line", or nothing when it is not known."""
    return f"{site[0]}:{site[1]}" if site[0] else ""


def explain(waiters: list[Waiter], world_size: int,
            place: Callable[[tuple[str, int]], str] = file_and_line) -> Stuck:
    """The wait-for cycle that the first waiter leads to, or its path to a rank that has finished.

    `waiters` are all blocked streams, one entry each; a stream that is waited for and not among
    them has finished. `place` turns a waiter's site into words. ValueError when nothing waits.
    """
    if not waiters:
        raise ValueError("waiters=[]: nothing waits")
    path, cyclic = _path({(w.rank, w.stream): w for w in waiters}, waiters[0])
    ranks = [w.rank for w in path] + [path[-1].peer]
    steps = [r for i, r in enumerate(ranks) if i == 0 or r != ranks[i - 1]]
    header = "deadlock: " + " -> ".join(map(str, steps if len(steps) > 1 else steps * 2))
    told = [(w.rank, _sentence(w, place(w.site))) for w in path]
    if not cyclic:
        header += " (finished)"
        told.append((path[-1].peer, "has finished"))
    notes: dict[int, str] = {}
    for rank, text in told:
        notes[rank] = f"{notes[rank]}; {text}" if rank in notes else text
    lines = [f"rank {rank} {text}" for rank, text in told]
    edges = [(w.rank, w.peer, w.what) for w in path if w.rank != w.peer]
    return Stuck(header, lines, {"world_size": world_size, "edges": edges, "notes": notes})


def _sentence(waiter: Waiter, where: str) -> str:
    stream = "" if waiter.stream == MAIN else f"(stream {waiter.stream}) "
    return f"{stream}waits in {waiter.what}" + (f" at {where}" if where else "")


def _path(by_stream: dict[tuple[int, str], Waiter], first: Waiter) -> tuple[list[Waiter], bool]:
    """Waiters from `first` on. Of a cycle only the cycle, its lowest stream first."""
    path, seen, node = [], {}, (first.rank, first.stream)
    while node in by_stream and node not in seen:
        seen[node] = len(path)
        path.append(by_stream[node])
        node = (path[-1].peer, path[-1].peer_stream)
    if node not in seen:
        return path, False
    cycle = path[seen[node]:]
    lowest = min(range(len(cycle)), key=lambda i: (cycle[i].rank, cycle[i].stream != MAIN))
    return cycle[lowest:] + cycle[:lowest], True
