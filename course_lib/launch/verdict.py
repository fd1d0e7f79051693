"""Reading the board from outside: is a set of ranks stuck for good, and do their calls disagree?

Every waiting stream has one edge: to the stream that has to post the other side of its message, or
to the stream whose job it waits for. Following the edges ends at somebody who computes (no
verdict), in a cycle, or at a rank that has returned. The last two are a deadlock if nothing on the
path changes between two looks, because counters only grow. """

from __future__ import annotations

import zlib

from ..board import (
    FAILED,
    ON_CALL,
    ON_JOB,
    RECV,
    RETURNED,
    SEND,
    STREAMS,
    Board,
    CallRecord,
)
from ..waitfor import Waiter, doing

Node = tuple[int, int]  # rank, and the rank's own number of a stream


def next_node(board: Board, node: Node) -> Node | None:
    """Whom the stream waits for, or None when it may still move by itself."""
    rank, stream = node
    if board.life(rank) in (RETURNED, FAILED):
        return None
    blocked = board.blocked(rank, stream)
    if blocked is None:
        given, done = board.jobs(rank, stream)
        return (rank, 0) if stream > 0 and given == done else None
    if blocked.kind == ON_JOB:
        return (rank, blocked.peer) if board.jobs(rank, blocked.peer)[1] < blocked.k else None
    theirs = board.find_comm(blocked.peer, board.comm_crc(rank, blocked.comm))
    if theirs is None:
        return blocked.peer, 0
    if blocked.kind == ON_CALL:
        begun = board.call_count(blocked.peer, theirs) >= blocked.k
        return None if begun else (blocked.peer, board.stream_of(blocked.peer, theirs))
    posted = board.posted(blocked.peer, theirs, blocked.collective, 1 - blocked.direction, rank)
    return None if posted >= blocked.k else (blocked.peer, board.stream_of(blocked.peer, theirs))


def find_stuck(board: Board) -> list[Node]:
    """A path of streams that cannot move, ending in a cycle or at a rank that has returned; [] if
    there is none.
    """
    for rank in range(board.world_size):
        path, node = [], (rank, 0)
        while True:
            following = next_node(board, node)
            path.append(node)
            if following is None:
                if len(path) > 1 and board.life(node[0]) == RETURNED:
                    return path
                break
            if following in path:
                return path
            node = following
    return []


def moving(board: Board) -> list[Node]:
    """Every stream that may still move by itself."""
    running = [rank for rank in range(board.world_size)
               if board.life(rank) not in (RETURNED, FAILED)]
    return [(rank, stream) for rank in running for stream in range(STREAMS)
            if next_node(board, (rank, stream)) is None]


def snapshot(board: Board, path: list[Node]) -> tuple:
    """Everything on the path that would change if one of its streams moved."""
    return tuple((node, board.life(node[0]), board.blocked(*node), board.jobs(*node))
                 for node in path)


def all_waiting(board: Board) -> list[Node]:
    """Every stream that waits for a stuck one, itself included: what the report shows."""
    found = []
    for rank in range(board.world_size):
        node, path = (rank, 0), []
        while node is not None and node not in path:
            path.append(node)
            node = next_node(board, node)
        if len(path) > 1 or node is not None:
            found += [n for n in path if n not in found and next_node(board, n) is not None]
    return found


def waiter(board: Board, node: Node) -> Waiter:
    """The node in words."""
    rank, stream = node
    peer, peer_stream = next_node(board, node) or node
    blocked = board.blocked(rank, stream)
    if blocked is None:
        return Waiter(rank, "an idle background stream", peer, str(stream), _name(peer_stream))
    if blocked.kind == ON_JOB:
        return Waiter(rank, f"wait for background job {blocked.k}", peer, _name(stream),
                      _name(peer_stream),
                      blocked.site)
    call = current_call(board, rank, blocked.comm) if blocked.collective else ""
    if blocked.kind == ON_CALL:
        return Waiter(rank, f"{call} for rank {blocked.peer} to begin it", peer, _name(stream),
                      _name(peer_stream), blocked.site)
    what = doing({SEND: "send", RECV: "recv"}[blocked.direction], blocked.peer, call)
    return Waiter(rank, what, peer, _name(stream), _name(peer_stream), blocked.site)


def current_call(board: Board, rank: int, comm: int) -> str:
    """"all_reduce #3": the last call that the rank has begun on its communicator."""
    number = board.call_count(rank, comm)
    record = board.call(rank, comm, number)
    return f"{record.text.split(' ')[0]} #{number}" if record else f"call #{number}"


def last_call(board: Board, rank: int) -> tuple[str, tuple[str, int]] | None:
    """The newest collective call that the rank has written down, over all its communicators, and
    its line.
    """
    found = None
    for members in _members(board).values():
        if rank in members and (number := board.call_count(rank, members[rank])):
            record = board.call(rank, members[rank], number)
            found = (f"{record.text.split(' ')[0]} #{number}", record.site) if record else found
    return found


def differing_call(board: Board) -> tuple[int, dict[int, CallRecord]] | None:
    """The first call that two ranks of a communicator describe differently, and what each wrote."""
    for members in _members(board).values():
        newest = max(board.call_count(rank, comm) for rank, comm in members.items())
        for number in range(max(1, newest - 15), newest + 1):
            said = {rank: record for rank, comm in members.items()
                    if (record := board.call(rank, comm, number)) is not None}
            if len({record.text for record in said.values()}) > 1:
                return number, said
    return None


def call_counts(board: Board, name: str = "world") -> dict[int, int]:
    """How many collective calls each rank has begun on the communicator."""
    crc = zlib.crc32(name.encode()) | 1 << 32
    counts = {}
    for rank in range(board.world_size):
        comm = board.find_comm(rank, crc)
        counts[rank] = 0 if comm is None else board.call_count(rank, comm)
    return counts


def _members(board: Board) -> dict[int, dict[int, int]]:
    """crc of each communicator -> {rank: the rank's own number for it}."""
    members: dict[int, dict[int, int]] = {}
    for rank in range(board.world_size):
        comm = 0
        while comm < 32 and (crc := board.comm_crc(rank, comm)):
            members.setdefault(crc, {})[rank] = comm
            comm += 1
    return members


def _name(stream: int) -> str:
    return "main" if stream == 0 else str(stream)
