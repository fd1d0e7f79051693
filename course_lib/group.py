"""One rank's view of a process group: its number, its size, and the few verbs that everything else
is built from.

`send`, `recv`, `isend`, `irecv` and `exchange` work on gloo, on NCCL and in a dry run; the code
that uses a Group cannot tell which. Ranks are numbered 0..size-1 inside the group; `ranks` says
which rank of the world each one is.

Every message is recorded and published on the board, so that the launcher can say who waits for
whom.
"""

from __future__ import annotations

import contextlib
import zlib

import torch

from .board import DTYPES, ON_MESSAGE, RECV, SEND
from .context import KINDS, CallError, Context, Handle, probe, sendable
from .recorder import learner_site, library_line
from .trace import MAIN


class Group:
    """Ranks that talk to each other. Made by `run_ranks`, `dry_run`, `current_group` and
    `split`.
    """

    def __init__(self, context: Context, name: str, ranks: tuple[int, ...], stream: str = MAIN,
                 transport=None):
        self.ranks, self.size = tuple(ranks), len(ranks)
        self.rank = self.ranks.index(context.rank)
        self.name, self.stream_name = name, stream
        self.device = context.device
        self._context, self._transport = context, transport or context.transport
        self.axes: dict[tuple[int, ...], list[Group]] = {}  # made once by collectives.axis_groups
        self._streams: dict = {}
        self._counts: dict[tuple, int] = {}
        self._call = None  # the collective that is running on this group, see calls.py
        self._calls, self._splits, self._tags = 0, 0, zlib.crc32(name.encode())
        writer = context.writer
        self._stream_number = writer.stream(stream) if writer else 0
        self._number = writer.comm(name, self._stream_number) if writer else 0

    def __repr__(self) -> str:
        return f"Group {self.name!r}: rank {self.rank} of {self.size}, ranks {list(self.ranks)}"

    # -- messages ----------------------------------------------------------------------------------

    def send(self, tensor: torch.Tensor, to: int) -> None:
        """Send the tensor; returns when the peer has received it. A rendezvous: two sends that meet
        deadlock.
        """
        self._blocking(SEND, tensor, to)

    def recv(self, tensor: torch.Tensor, frm: int) -> torch.Tensor:
        """Fill the tensor (contiguous) with what the peer sends, and return it. Shape and dtype
        must agree.
        """
        self._blocking(RECV, tensor, frm)
        return tensor

    def isend(self, tensor: torch.Tensor, to: int) -> Handle:
        """Start to send and return at once; the tensor must not change before `wait()` on the
        handle.
        """
        return self._start([(SEND, tensor, to)])[0]

    def irecv(self, tensor: torch.Tensor, frm: int) -> Handle:
        """Start to receive and return at once; the tensor is not valid before `wait()` on the
        handle.
        """
        return self._start([(RECV, tensor, frm)])[0]

    def expect(self, into: torch.Tensor, frm: int) -> Handle | tuple[torch.Tensor, int]:
        """Announce what a later `exchange(out, to, expected)` receives, in the order of the calls.

        gloo posts the receive now, so that it is there before the message; NCCL with its exchange.
        """
        return self.irecv(into, frm) if self._transport.posts_ahead else (into, frm)

    def exchange(self, out: torch.Tensor, to: int, into, frm: int | None = None) -> torch.Tensor:
        """Send `out` to one peer while another (or the same) one fills `into`; return `into`.

        The primitive of every symmetric step: it cannot deadlock, because the receive is posted
        with the send. `into` may also be what `expect` returned; `frm` is then left out.
        """
        if isinstance(into, Handle):
            handles = [into, *self._start([(SEND, out, to)])]
            self._wait(handles, handles[1].source)
            return into.tensor
        if isinstance(into, tuple):
            into, frm = into
        if to == self.rank and frm == self.rank:
            if into.shape != out.shape or into.dtype != out.dtype:
                raise ValueError(f"into is {into.dtype} of shape {tuple(into.shape)}, out is "
                                 f"{out.dtype} of shape {tuple(out.shape)}: must be alike")
            if self._call is not None and self._context.recorder:
                self._context.recorder.moves.note("copy", into, out, self.stream_name)
            return into.copy_(out)
        handles = self._start([(RECV, into, frm), (SEND, out, to)])
        self._wait(handles, handles[0].source)
        return into

    # -- groups and streams ------------------------------------------------------------------------

    def split(self, groups: list[list[int]]) -> Group:
        """The part of this group that this rank is in. Every rank calls it, with the same lists of
        group ranks.

        Raises ValueError unless every rank of the group is in exactly one list.
        """
        members = sorted(rank for part in groups for rank in part)
        if members != list(range(self.size)):
            raise ValueError(f"groups={groups!r}: every rank of 0..{self.size - 1} must be in "
                             "exactly one list")
        from .calls import begin_call, end_call

        text = f"split into {[list(part) for part in groups]}"
        end_call(self, begin_call(self, "split", text, None))
        self._splits += 1
        index = next(i for i, part in enumerate(groups) if self.rank in part)
        return Group(self._context, f"{self.name}/{self._splits}.{index}",
                     tuple(self.ranks[rank]
                           for rank in groups[index]), self.stream_name, self._transport)

    def stream(self, name: str = "comm"):
        """The background stream of that name: one thread, one queue, one communicator of its own
        (see stream.py). Made at the first call; later ones return the same.
        """
        from .stream import Stream

        if name not in self._streams:
            self._streams[name] = Stream(self, name)
        return self._streams[name]

    # -- what the recorder is told -----------------------------------------------------------------

    def hold(self, tensor: torch.Tensor, category: str, name: str = "") -> torch.Tensor:
        """Say what a tensor's storage is kept for (see trace.CATEGORIES); it is counted either
        way.
        """
        if self._context.recorder:
            self._context.recorder.hold(tensor, category, name)
        return tensor

    def resized(self, tensor: torch.Tensor) -> None:
        """Say that the tensor's storage was resized: no other sign of that reaches the recorder."""
        if self._context.recorder:
            self._context.recorder.resized(tensor)

    @contextlib.contextmanager
    def label(self, text: str):
        """Label what is computed inside the block, as in `with group.label("forward"):`."""
        recorder = self._context.recorder
        if not recorder:
            yield
            return
        recorder.flush()
        before, recorder.label = recorder.label, text
        try:
            yield
        finally:
            recorder.flush()
            recorder.label = before

    def mark(self, text: str) -> None:
        """Mark this point of the program: `trace.held_at(rank, text)` tells what was held here."""
        recorder = self._context.recorder
        if recorder:
            recorder.flush()
            recorder.add("record", recorder.now(), recorder.now(), self.stream_name, event=text)

    def compute(self, label: str, seconds: float | None = None, flops: int = 0,
                nbytes: int = 0) -> None:
        """Record a computation that is only named, not executed: `seconds` long wherever it is
        replayed.
        """
        recorder = self._context.recorder
        if recorder:
            now = recorder.now()
            recorder.add("compute", now, now, self.stream_name, label=label, seconds=seconds,
                         flops=flops,
                         nbytes=nbytes)

    # -- inside ------------------------------------------------------------------------------------

    def _blocking(self, direction: int, tensor: torch.Tensor, peer: int) -> None:
        handles = self._start([(direction, tensor, peer)], record=False)
        self._wait(handles, handles[0].source, whole=True)

    def _start(self, wanted: list[tuple[int, torch.Tensor, int]],
               record: bool = True) -> list[Handle]:
        context, call, counts = self._context, self._call, self._counts
        site = call.site if call else learner_site()
        source = library_line() if context.recorder else ("", 0)
        first_tag = ((call.tag if call else self._tags) & 0x7FFFF) << 12
        ops, posted = [], []
        for direction, tensor, peer in wanted:
            tensor, peer = sendable(self, direction, tensor, peer)
            key = (call is not None, direction, peer)
            k = counts[key] = counts.get(key, 0) + 1
            if context.writer:
                self._publish(direction, tensor, peer, k, site)
            ops.append((direction, tensor, peer, first_tag | k & 0xFFF))
            posted.append((direction, tensor, peer, k))
        works = self._transport.post(ops)
        handles = [Handle(self, *args, work, site, source) for args, work in zip(posted, works)]
        if record:
            for handle in handles:
                if handle.direction == SEND and not handle.collective:
                    handle.probe = probe(handle.tensor)
                if context.recorder:
                    context.recorder.message(KINDS[handle.direction][1], handle)
        return handles

    def _wait(self, handles: list[Handle], source, whole: bool = False) -> None:
        context, recorder = self._context, self._context.recorder
        start = recorder.now() if recorder else 0.0
        for handle in handles:
            if context.writer:
                context.writer.block(self._stream_number, ON_MESSAGE, self._number,
                                     handle.collective,
                                     handle.direction, handle.peer, handle.k, handle.site)
            handle.work.wait()
            if context.writer:
                context.writer.unblock(self._stream_number)
                if handle.direction == RECV and not handle.collective:
                    self._compare(handle.direction, handle.tensor, handle.peer, handle.k,
                                  handle.site)
            context.open.pop(handle.request, None)
            if handle.probe is not None and handle.probe != probe(handle.tensor):
                raise RuntimeError(f"the tensor sent to rank {handle.peer} was changed between "
                                   "isend and wait: "
                                   "the peer may have received either value. Wait first, or send a "
                                   "copy")
        if recorder and whole:
            recorder.message(KINDS[handles[0].direction][0], handles[0], start)
        elif recorder:
            recorder.add("wait", start, recorder.now(), self.stream_name,
                         requests=tuple([handle.request for handle in handles]),
                         site=handles[0].site, source=source)

    def _publish(self, direction, tensor, peer, k, site) -> None:
        writer = self._context.writer
        if self._call is None:
            writer.spec(self._number, direction, peer, k, DTYPES.index(str(tensor.dtype)[6:]),
                        tensor.numel() * tensor.element_size())
            self._compare(direction, tensor, peer, k, site)
        writer.post(self._number, self._call is not None, direction, peer, k)

    def _compare(self, direction, tensor, peer, k, site) -> None:
        """Raise CallError if the peer has posted its side of this message with another size or
        dtype.
        """
        context = self._context
        theirs = context.board.find_comm(peer, zlib.crc32(self.name.encode()) | 1 << 32)
        said = None if theirs is None else context.board.spec(peer, theirs, 1 - direction,
                                                              context.rank, k)
        dtype, nbytes = str(tensor.dtype)[6:], tensor.numel() * tensor.element_size()
        if said is None or said == (dtype, nbytes):
            return
        stuck = context.board.blocked(peer, context.board.stream_of(peer, theirs))
        verb = ("sends", "receives")
        src, dst = (context.rank, peer) if direction == SEND else (peer, context.rank)
        raise CallError(f"message #{k} from rank {src} to rank {dst}", {
            context.rank: (f"{verb[direction]} {nbytes} B of {dtype}", site),
            peer: (f"{verb[1 - direction]} {said[1]} B of {said[0]}", stuck.site if stuck
                   else ("", 0))})
