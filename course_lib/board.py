"""The status board: one memory-mapped file per run in which every rank says what it has posted and
waits for.

A rank only writes its own region, one 8-byte word or one checksummed record at a time, and
everybody may read all of it at any moment. From it follow both promises of the launcher:

- *Deadlock.* Counters say how many sends and receives a rank has posted with each peer. A stream
  that waits for its k-th message with a peer is stuck exactly while the peer has posted fewer than
  k on its side. Counters only grow, so a cycle of stuck streams that is the same in two looks is
  certain; no timing is involved (verdict.py follows it).
- *Mismatch.* Before a collective moves data its rank writes what it is about to do, and then reads
  what the others wrote for the same call number. Whoever comes second sees both, before gloo can
  abort or add nonsense.

Records carry a crc32 because a reader may see them half written; a wrong checksum means "not there
yet".
"""

from __future__ import annotations

import mmap
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

STARTING, RUNNING, RETURNED, FAILED = range(4)  # life of a rank
SEND, RECV = 0, 1  # direction of a message, and index into the counters
FREE, ON_MESSAGE, ON_JOB, ON_CALL = range(4)  # what a stream is blocked on

COMMS, STREAMS, FILES = 32, 8, 48  # table sizes per rank
CALL_SLOTS, CALL_BYTES, TEXT = 16, 192, 160
SPEC_SLOTS, SHAPE_SLOTS, SHAPE_BYTES = 8, 2, 4096
FILE_BYTES = 256
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8",
          "bool",
          "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True)
class Blocked:
    """What one stream of a rank waits for. `k` counts from 1: the k-th message with `peer`, or the
    k-th job.
    """

    kind: int
    comm: int
    collective: bool
    direction: int
    peer: int
    k: int
    site: tuple[str, int]


@dataclass(frozen=True)
class CallRecord:
    number: int
    text: str
    site: tuple[str, int]


class Layout:
    """Where everything lies, in 8-byte words and then bytes, for one rank of a world of
    `world_size`.
    """

    def __init__(self, world_size: int):
        self.life, self.calls = 0, 1
        self.stream = self.calls + COMMS  # per stream: state, site, jobs given, jobs done
        self.comms = self.stream + 4 * STREAMS  # crc32 of the communicator's name, and its stream
        self.posted = self.comms + 2 * COMMS
        self.spec = self.posted + COMMS * 2 * 2 * world_size
        words = self.spec + COMMS * 2 * world_size * SPEC_SLOTS
        self.files = words * 8
        self.records = self.files + FILES * FILE_BYTES
        self.shapes = self.records + COMMS * CALL_SLOTS * CALL_BYTES
        self.size = -(-(self.shapes + COMMS * SHAPE_SLOTS * SHAPE_BYTES) // 4096) * 4096


class Board:
    """The whole board, readable by all; `mine` writes one rank's region.

    Raises RuntimeError when a rank uses more than 32 communicators or 8 streams.
    """

    def __init__(self, path: str | Path, world_size: int, create: bool = False):
        self.world_size, self.at = world_size, Layout(world_size)
        size = self.at.size * world_size
        with open(path, "w+b" if create else "r+b") as file:
            if create:
                file.truncate(size)
            self.map = mmap.mmap(file.fileno(), size)
        self.bytes = memoryview(self.map)
        self.words = self.bytes.cast("Q")

    def close(self) -> None:
        """Give the file back; a mapped file cannot be deleted on Windows."""
        self.words.release()
        self.bytes.release()
        self.map.close()

    # -- reading, by anybody -----------------------------------------------------------------------

    def word(self, rank: int, index: int) -> int:
        return self.words[rank * self.at.size // 8 + index]

    def life(self, rank: int) -> int:
        return self.word(rank, self.at.life)

    def blocked(self, rank: int, stream: int) -> Blocked | None:
        """What the stream waits for, or None when it computes (or its word changed while we
        looked).
        """
        at = self.at.stream + 4 * stream
        state = self.word(rank, at)
        where = self.word(rank, at + 1)
        if not state or state != self.word(rank, at):
            return None
        site = (self.file(rank, where >> 32), where & 0xFFFFFFFF)
        return Blocked(state >> 62, state >> 56 & 63, bool(state >> 55 & 1), state >> 54 & 1,
                       state >> 38 & 0xFFFF, state & 0xFFFFFFFF, site)

    def jobs(self, rank: int, stream: int) -> tuple[int, int]:
        """(given, finished) background jobs of a stream."""
        at = self.at.stream + 4 * stream
        return self.word(rank, at + 2), self.word(rank, at + 3)

    def comm_crc(self, rank: int, comm: int) -> int:
        return self.word(rank, self.at.comms + 2 * comm)

    def find_comm(self, rank: int, crc: int) -> int | None:
        """The rank's own number for the communicator with that name, or None while it has none."""
        for comm in range(COMMS):
            known = self.comm_crc(rank, comm)
            if known == crc:
                return comm
            if not known:
                return None
        return None

    def stream_of(self, rank: int, comm: int) -> int:
        return self.word(rank, self.at.comms + 2 * comm + 1)

    def posted(self, rank: int, comm: int, collective: bool, direction: int, peer: int) -> int:
        return self.word(rank, self._posted(comm, collective, direction, peer))

    def spec(self, rank: int, comm: int, direction: int, peer: int, k: int) -> tuple[str,
                                                                                     int] | None:
        """(dtype, bytes) of the k-th plain message in that direction, or None while it is not
        there.
        """
        word = self.word(rank, self._spec(comm, direction, peer, k))
        if not word or word >> 52 != k & 0xFFF:
            return None
        return DTYPES[word >> 46 & 63], word & (1 << 46) - 1

    def call_count(self, rank: int, comm: int) -> int:
        return self.word(rank, self.at.calls + comm)

    def call(self, rank: int, comm: int, number: int) -> CallRecord | None:
        """What the rank wrote for that call of the communicator, or None when it is not (or no
        longer) there.
        """
        at = self._record(rank, comm, number)
        raw = bytes(self.bytes[at:at + CALL_BYTES])
        crc, n, line, file, length = struct.unpack_from("<IIIHH", raw)
        if n != number or crc != zlib.crc32(raw[4:]):
            return None
        return CallRecord(n, raw[16:16 + length].decode(errors="replace"),
                          (self.file(rank, file), line))

    def shapes(self, rank: int, comm: int, number: int) -> bytes | None:
        """What the rank said of its tensors in that call (shapes.py), or None while it is not
        there.
        """
        at = self._shapes(rank, comm, number)
        crc, n, length = struct.unpack_from("<III", self.bytes, at)
        body = bytes(self.bytes[at + 12:at + 12 + min(length, SHAPE_BYTES - 12)])
        return body if n == number and crc == zlib.crc32(body) else None

    def file(self, rank: int, index: int) -> str:
        at = rank * self.at.size + self.at.files + index * FILE_BYTES
        return bytes(self.bytes[at:at + FILE_BYTES]).rstrip(b"\0").decode(errors="replace")

    def _posted(self, comm, collective, direction, peer) -> int:
        return self.at.posted + ((comm * 2 + collective) * 2 + direction) * self.world_size + peer

    def _spec(self, comm, direction, peer, k) -> int:
        row = (comm * 2 + direction) * self.world_size + peer
        return self.at.spec + row * SPEC_SLOTS + k % SPEC_SLOTS

    def _record(self, rank, comm, number) -> int:
        slot = comm * CALL_SLOTS + number % CALL_SLOTS
        return rank * self.at.size + self.at.records + slot * CALL_BYTES

    def _shapes(self, rank, comm, number) -> int:
        slot = comm * SHAPE_SLOTS + number % SHAPE_SLOTS
        return rank * self.at.size + self.at.shapes + slot * SHAPE_BYTES

    def mine(self, rank: int) -> Writer:
        return Writer(self, rank)


class Writer:
    """One rank's pen. Peers are ranks of the world; `comm` and `stream` are this rank's own small
    numbers.
    """

    def __init__(self, board: Board, rank: int):
        self.board, self.rank = board, rank
        self.words, self.base = board.words, rank * board.at.size // 8
        # Worked out once: these two are written at every message
        self.blocked, self.posted = self.base + board.at.stream, self.base + board.at.posted
        self.comms: dict[str, int] = {}
        self.streams: list[str] = []
        self.files: dict[str, int] = {}

    def life(self, value: int) -> None:
        self.words[self.base + self.board.at.life] = value

    def comm(self, name: str, stream: int) -> int:
        """Number a communicator; its crc32 is written last, because that is what makes it
        visible.
        """
        if name not in self.comms:
            number = len(self.comms)
            if number >= COMMS:
                raise RuntimeError(f"rank {self.rank} makes communicator number "
                                   f"{number + 1} ({name}): at most {COMMS} are possible in one "
                                   "run")
            at = self.base + self.board.at.comms + 2 * number
            self.words[at + 1] = stream
            self.words[at] = zlib.crc32(name.encode()) | 1 << 32
            self.comms[name] = number
        return self.comms[name]

    def stream(self, name: str) -> int:
        if name not in self.streams:
            if len(self.streams) >= STREAMS:
                raise RuntimeError(f"rank {self.rank} makes stream {name!r}: at most {STREAMS} are "
                                   "possible")
            self.streams.append(name)
        return self.streams.index(name)

    def post(self, comm: int, collective: bool, direction: int, peer: int, k: int) -> None:
        row = (comm * 2 + collective) * 2 + direction
        self.words[self.posted + row * self.board.world_size + peer] = k

    def spec(self, comm: int, direction: int, peer: int, k: int, dtype: int, nbytes: int) -> None:
        self.words[self.base + self.board._spec(comm, direction, peer, k)] = (
            (k & 0xFFF) << 52 | dtype << 46 | nbytes)

    def block(self, stream: int, kind: int, comm: int, collective: bool, direction: int, peer: int,
              k: int, site: tuple[str, int]) -> None:
        at = self.blocked + 4 * stream
        self.words[at + 1] = self.file(site[0]) << 32 | site[1]
        what = kind << 62 | comm << 56 | collective << 55 | direction << 54
        self.words[at] = what | peer << 38 | k

    def unblock(self, stream: int) -> None:
        self.words[self.blocked + 4 * stream] = 0

    def jobs(self, stream: int, given: int | None = None, done: int | None = None) -> None:
        at = self.blocked + 4 * stream
        if given is not None:
            self.words[at + 2] = given
        if done is not None:
            self.words[at + 3] = done

    def call(self, comm: int, number: int, text: str, site: tuple[str, int]) -> None:
        """Write the record of a call (numbered from 1, at most TEXT bytes), then count it."""
        body = text.encode()[:TEXT]
        raw = struct.pack("<IIHH", number, site[1], self.file(site[0]), len(body)) + body
        raw += bytes(CALL_BYTES - 4 - len(raw))
        at = self.board._record(self.rank, comm, number)
        self.board.bytes[at:at + CALL_BYTES] = struct.pack("<I", zlib.crc32(raw)) + raw
        self.words[self.base + self.board.at.calls + comm] = number

    def file(self, name: str) -> int:
        if name not in self.files:
            index = min(len(self.files),
                        FILES - 1)  # the last entry is shared by all files beyond the table
            at = self.rank * self.board.at.size + self.board.at.files + index * FILE_BYTES
            self.board.bytes[at:at + FILE_BYTES] = name.encode()[-FILE_BYTES:].ljust(FILE_BYTES,
                                                                                     b"\0")
            self.files[name] = index
        return self.files[name]

    def shapes(self, comm: int, number: int, body: bytes) -> None:
        """Say what tensors this rank brings to a call. ValueError when there are too many to write
        down.
        """
        if len(body) > SHAPE_BYTES - 12:
            raise ValueError(f"the shapes of this call take {len(body)} B, the board has room for "
                             f"{SHAPE_BYTES - 12}: fewer ranks or tensors of fewer dimensions")
        at = self.board._shapes(self.rank, comm, number)
        self.board.bytes[at:at + 12 + len(body)] = struct.pack(
            "<III", zlib.crc32(body), number, len(body)) + body
