"""Replay: run a Trace on a Machine in virtual time, by a deterministic event simulation.

What happens, and when:

- A stream runs its program in order, as fast as the rules let it. Streams of one rank are ordered
  among each other only by `record` and `await`; computations on two streams of a rank overlap at
  full speed.
- `compute` takes the event's `seconds` where given, otherwise what the machine says. `isend`,
  `irecv`, `record`, `alloc`, `free`, `begin` and `end` take no time.
- `send` and `recv` are a rendezvous: they end when the message has arrived. `wait` ends when all
  its messages have.
- A message is posted when both sides have posted it: the k-th send from a to b on a channel meets
  the k-th receive.
- It starts when its out-port, its in-port and every link of its route are free, and then takes
  `latency + bytes / bandwidth`; each of them carries one message at a time. Nothing is reserved
  ahead: when something is freed, the oldest message whose whole route is free starts (posted
  first; ties by source, then destination, then the order of posting). Whatever else happens at the
  same instant happens before messages start.
- A stream ends with its last event, or with its last message if nobody waited for that.

Cost: near n log n for n events; `wires.py` says why.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from heapq import heappop, heappush
from inspect import isfunction

from .machine import Machine, stated
from .timeline import Message, Span, Timeline
from .trace import CATEGORIES, MAIN, RECVS, SENDS, Event, Trace
from .waitfor import Stuck, Waiter, doing, explain
from .wires import Lane, Post, Wires, check_sizes


class ReplayDeadlock(RuntimeError):
    """Ranks wait in a circle: the text names it and where each stands; `graph` draws it."""

    def __init__(self, stuck: Stuck) -> None:
        super().__init__(str(stuck))
        self.graph = stuck.graph


def replay(trace: Trace, machine: Machine) -> Timeline:
    """The Timeline of `trace` on `machine`, in seconds of virtual time from 0.

    TypeError for a machine that is none, such as `unit` instead of `unit()`; ValueError when it has
    too few ranks, or the trace is not a program (sizes of a message differ, an isend is never
    received, an event awaited is never recorded), or when it is of an asynchronous run and the
    machine is not `stated()`; ReplayDeadlock when ranks wait in a circle.
    """
    if not isinstance(machine, Machine):
        called = f"; call it: {machine.__name__}()" if isfunction(machine) else ""
        raise TypeError(f"machine={machine!r}: must be a Machine{called}")
    machine.check_world_size(trace.world_size)
    if trace.asynchronous and machine != stated():
        raise ValueError(f"machine={machine.name}: who arrived when in an asynchronous run follows "
                         "from its workers' speeds, so there is no other machine than stated()")
    return _Replay(trace, machine).run()


class _Stream:
    """One stream: where it is in its program, and what keeps it there."""

    __slots__ = ("rank", "name", "order", "program", "at", "since", "missing", "calls")

    def __init__(self, rank: int, name: str, order: int, program: list[Event]) -> None:
        self.rank, self.name, self.order, self.program = rank, name, order, program
        self.at = 0  # index of the event that is running or comes next
        self.since: float | None = None  # when the running event blocked
        self.missing = 0  # messages that the running event waits for
        self.calls = 0  # collectives that it is in


class _Replay:
    """The state of one replay; `run` moves the clock from instant to instant."""

    def __init__(self, trace: Trace, machine: Machine) -> None:
        self.trace, self.machine, self.now = trace, machine, 0.0
        self.wires = Wires(machine)
        self.agenda: list[tuple] = []  # heap of (time, serial, stream, or lane and message)
        self.serial = 0
        self.unmatched: dict[tuple, deque[Post]] = defaultdict(deque)
        self.posts: dict[tuple[int, int], Post] = {}  # (rank, request id) -> what was posted
        self.recorded: set[tuple[int, str]] = set()
        self.awaiting: dict[tuple[int, str], list[_Stream]] = defaultdict(list)
        self.held = defaultdict(lambda: Counter(dict.fromkeys(CATEGORIES, 0)))
        self.out = Timeline(trace.world_size, machine.name, trace=trace)
        self.out.held = {rank: [] for rank in range(trace.world_size)}
        keys = sorted(trace.programs, key=lambda key: (key[0], key[1] != MAIN, key[1]))
        self.streams = [_Stream(*key, i, trace.programs[key]) for i, key in enumerate(keys)]
        self.steps = {"compute": self._compute, "send": self._blocking, "recv": self._blocking,
                      "isend": self._immediate, "irecv": self._immediate, "wait": self._wait,
                      "record": self._record, "await": self._await, "alloc": self._hold,
                      "free": self._hold, "begin": self._call, "end": self._call}

    def run(self) -> Timeline:
        self.ready = list(self.streams)
        while True:
            for stream in self.ready:  # grows while it is read: a record wakes other streams
                self._advance(stream)
            for lane, message, end in self.wires.start(self.now):
                self._started(lane, message, end)
            if not self.agenda:
                break
            self._next_instant()
        self._check_end()
        return self.out

    def _next_instant(self) -> None:
        """Move the clock, end every message and computation that ends there."""
        self.now, self.ready = self.agenda[0][0], []
        while self.agenda and self.agenda[0][0] == self.now:
            _, _, stream, lane, message = heappop(self.agenda)
            if stream is not None:
                self.ready.append(stream)
                continue
            self.wires.release(lane)
            for post in message[1:]:
                self._arrived(post)
        self.ready.sort(key=lambda stream: stream.order)

    def _at(self, time: float, stream: _Stream | None, lane=None, message=None) -> None:
        self.serial += 1
        heappush(self.agenda, (time, self.serial, stream, lane, message))

    def _advance(self, stream: _Stream) -> None:
        """Run the stream until it blocks or ends."""
        program, steps, rank = stream.program, self.steps, stream.rank
        if stream.since is not None:
            event = program[stream.at]
            if self.now > stream.since:
                self.out.spans.append(
                    Span(rank, stream.name, event.kind, stream.since, self.now, event))
            stream.at += 1
            stream.since = None
        while stream.at < len(program):
            event = program[stream.at]
            if event.kind not in steps:
                raise ValueError(f"kind={event.kind!r}: must be one of {', '.join(steps)}")
            if not steps[event.kind](stream, event):
                stream.since = self.now
                return
            stream.at += 1
        self.out.finished[rank, stream.name] = self.now

    # Each step returns True when the stream goes on at once, False when it is blocked.

    def _call(self, stream: _Stream, event: Event) -> bool:
        stream.calls += 1 if event.kind == "begin" else -1
        return True

    def _compute(self, stream: _Stream, event: Event) -> bool:
        seconds = event.seconds
        if seconds is None:
            label = event.label if stream.calls else ""  # gamma is for a collective's "add" alone
            seconds = self.machine.compute_seconds(event.flops, event.nbytes, label)
        if not seconds >= 0:
            raise ValueError(f"seconds={seconds} of compute {event.label!r}: must be at least 0")
        if seconds > 0:
            self._at(self.now + seconds, stream)
        return seconds == 0

    def _blocking(self, stream: _Stream, event: Event) -> bool:
        self._post(stream, event).waiters = (stream,)
        stream.missing = 1
        return False

    def _immediate(self, stream: _Stream, event: Event) -> bool:
        self.posts[stream.rank, event.requests[0]] = self._post(stream, event)
        return True

    def _wait(self, stream: _Stream, event: Event) -> bool:
        stream.missing = 0
        for request in event.requests:
            post = self.posts.get((stream.rank, request))
            if post is None:
                raise ValueError(f"rank {stream.rank}, stream {stream.name}: waits for request "
                                 f"{request}, which the rank has not posted")
            if not post.done and stream not in post.waiters:
                post.waiters += (stream,)
                stream.missing += 1
        return stream.missing == 0

    def _record(self, stream: _Stream, event: Event) -> bool:
        key = (stream.rank, event.event)
        self.recorded.add(key)
        self.ready += self.awaiting.pop(key, [])
        return True

    def _await(self, stream: _Stream, event: Event) -> bool:
        key = (stream.rank, event.event)
        if key not in self.recorded:
            self.awaiting[key].append(stream)
        return key in self.recorded

    def _hold(self, stream: _Stream, event: Event) -> bool:
        held = self.held[stream.rank]
        held[event.category] += event.nbytes if event.kind == "alloc" else -event.nbytes
        self.out.held[stream.rank].append((self.now, dict(held)))
        return True

    # Messages.

    def _post(self, stream: _Stream, event: Event) -> Post:
        post, sends = Post(stream, event), event.kind in SENDS
        if not 0 <= event.peer < self.trace.world_size or event.peer == stream.rank:
            raise ValueError(f"peer={event.peer} in {event.kind} of rank {stream.rank}: must be "
                             f"another rank in 0..{self.trace.world_size - 1}")
        pair = (stream.rank, event.peer) if sends else (event.peer, stream.rank)
        queue = self.unmatched[event.channel, *pair]
        if queue and (queue[0].event.kind in SENDS) != sends:
            other = queue.popleft()
            send, recv = (post, other) if sends else (other, post)
            check_sizes(send, recv)
            self.wires.add(*pair, self.now, send, recv)
        else:
            queue.append(post)
        return post

    def _started(self, lane: Lane, message: tuple, end: float) -> None:
        posted, send, recv = message
        self._at(end, None, lane, message)
        s, r = send.event, recv.event
        self.out.messages.append(Message(
            lane.src, lane.dst, s.nbytes, posted, self.now, end, s.channel, s.label, s, r,
            send.stream.name, recv.stream.name))
        seconds = lane.route.seconds(s.nbytes)
        for name in lane.resources:
            self.out.link_bytes[name] = self.out.link_bytes.get(name, 0) + s.nbytes
            self.out.link_seconds[name] = self.out.link_seconds.get(name, 0.0) + seconds

    def _arrived(self, post: Post) -> None:
        post.done = True
        for stream in post.waiters:
            stream.missing -= 1
            if stream.missing == 0:
                self.ready.append(stream)
        if post.stream.at == len(post.stream.program):
            self.out.finished[post.stream.rank, post.stream.name] = self.now

    def _check_end(self) -> None:
        blocked = [s for s in self.streams if s.at < len(s.program)]
        if blocked:
            raise ReplayDeadlock(explain([_waiter(s, self) for s in blocked],
                                         self.trace.world_size))
        for post in (post for queue in self.unmatched.values() for post in queue):
            e = post.event
            verb = "receives" if e.kind in SENDS else "sends"
            raise ValueError(f"{post.where}: {e.kind} with rank {e.peer} on channel "
                             f"{e.channel!r}, which rank {e.peer} never {verb}")


def _waiter(stream: _Stream, replay: _Replay) -> Waiter:
    """What a stream that can never go on waits for, and which stream would have to act."""
    event = stream.program[stream.at]
    if event.kind == "await":
        other = next((s for s in replay.streams if s.rank == stream.rank and any(
            e.kind == "record" and e.event == event.event for e in s.program[s.at:])), None)
        if other is None:
            raise ValueError(f"rank {stream.rank}, stream {stream.name}: awaits event "
                             f"{event.event!r}, which no stream of the rank records")
        return Waiter(stream.rank, f"await of stream {other.name}", stream.rank, stream.name,
                      other.name, event.site)
    missing = event
    if event.kind == "wait":
        missing = next(post.event for request in event.requests
                       if not (post := replay.posts[stream.rank, request]).done)
    words = doing(missing.kind, missing.peer, _open_call(stream))
    return Waiter(stream.rank, words, missing.peer, stream.name,
                  _answering(stream, missing, replay), event.site)


def _answering(stream: _Stream, event: Event, replay: _Replay) -> str:
    """The peer's stream that would post the other side, or else one that has not ended."""
    kinds = RECVS if event.kind in SENDS else SENDS
    peers = [s for s in replay.streams if s.rank == event.peer and s.at < len(s.program)]
    for peer in peers:
        if any(e.kind in kinds and e.peer == stream.rank and e.channel == event.channel
               for e in peer.program[peer.at:]):
            return peer.name
    return peers[0].name if peers else MAIN


def _open_call(stream: _Stream) -> str:
    """The outermost collective that the stream is in, as "all_reduce #3", or nothing."""
    calls = []
    for event in stream.program[:stream.at]:
        if event.kind == "begin":
            calls.append(f"{event.label} #{event.channel.rpartition('#')[2]}")
        elif event.kind == "end":
            calls.pop()
    return calls[0] if calls else ""
