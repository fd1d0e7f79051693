"""Replay over random programs: bounds, ports, order and clocks, checked by an evaluator of its own.

Programs are made in one global order, so none can deadlock: each message is put into the program of
its sender and of its receiver, blocking or not, on either of two streams, with waits, computations
and record/await pairs between.
"""

from collections import defaultdict
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.machine import dgx_h100, unit
from course_lib.trace import Event, Trace
from course_lib.virtual_time import replay

STREAMS = ("main", "comm")
MACHINES = st.sampled_from([unit(), unit(latency=0.5, bandwidth=4.0), dgx_h100(2)])


@st.composite
def programs(draw):
    W, ids = draw(st.integers(2, 5)), count()
    spread = draw(st.sampled_from([1, 3]))  # 3: ranks 0, 3, 6, ... lie in two nodes of 8
    trace = Trace((W - 1) * spread + 1)
    places = [(rank * spread, stream) for rank in range(W) for stream in STREAMS]
    trace.programs = {place: [] for place in places}
    open_requests = defaultdict(list)
    place, any_bool = st.sampled_from(places), st.booleans()
    for _ in range(draw(st.integers(1, 25))):
        here, there = draw(place), draw(place)
        action = draw(st.sampled_from(["message"] * 3 + ["compute", "event", "wait"]))
        if action == "message" and here[0] != there[0]:
            size = draw(st.integers(1, 9))
            channel = f"{here[1]}>{there[1]}"
            for kind, at, peer in (("send", here, there), ("recv", there, here)):
                fields = dict(peer=peer[0], nbytes=size, channel=channel)
                if draw(any_bool):
                    fields["requests"] = (next(ids),)
                    open_requests[at] += fields["requests"]
                    kind = "i" + kind
                trace.programs[at].append(Event(kind, **fields))
        elif action == "compute":
            seconds = draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
            trace.programs[here].append(Event("compute", seconds=seconds))
        elif action == "event":
            name = str(next(ids))
            trace.programs[here].append(Event("record", event=name))
            other = STREAMS[here[1] == "main"]
            trace.programs[here[0], other].append(Event("await", event=name))
        elif action == "wait" and any(open_requests.values()):
            here = draw(st.sampled_from([at for at, some in open_requests.items() if some]))
            some = draw(st.lists(st.sampled_from(open_requests[here]), unique=True, min_size=1))
            trace.programs[here].append(Event("wait", requests=tuple(some)))
            open_requests[here] = [r for r in open_requests[here] if r not in some]
    for at, requests in open_requests.items():
        trace.programs[at].append(Event("wait", requests=tuple(requests)))
        trace.programs[at].append(Event("compute", seconds=0.5))  # so that the wait's end is seen
    return trace


class Evaluator:
    """End of every stream and posting time of every message, given when messages end. No ports.

    `arrival(key, nbytes, posted)` is the end of a message; key = (src, dst, channel, k).
    """

    def __init__(self, trace, arrival):
        self.trace, self.arrival = trace, arrival
        self.at = dict.fromkeys(trace.programs, 0)
        self.clock = dict.fromkeys(trace.programs, 0.0)
        self.sides = defaultdict(dict)  # message -> {sends or not: (when posted, bytes)}
        self.posts = defaultdict(int)
        self.requests, self.recorded = {}, {}
        while any([self.advance(place) for place in trace.programs]):
            pass
        assert all(self.at[place] == len(p) for place, p in trace.programs.items())
        self.posted = {key: max(t for t, _ in both.values()) for key, both in self.sides.items()}

    def advance(self, place):
        """Run one stream as far as is known; True if it moved."""
        before, program = self.at[place], self.trace.programs[place]
        while self.at[place] < len(program):
            end = self.end_of(place, program[self.at[place]])
            if end is None:
                break
            self.clock[place] = end
            self.at[place] += 1
        return self.at[place] > before

    def end_of(self, place, event):
        """The clock after the event, or None when it is not known yet."""
        now, mark = self.clock[place], (place[0], event.event)
        if event.kind == "compute":
            return now + event.seconds
        if event.kind == "record":
            self.recorded[mark] = now
        if event.kind == "await":
            return max(now, self.recorded[mark]) if mark in self.recorded else None
        request = event.requests[0] if event.kind[0] == "i" else (place, self.at[place])
        if event.kind.endswith(("send", "recv")) and request not in self.requests:
            self.requests[request] = self.post(place, event)
        waited = {"wait": event.requests, "send": (request,), "recv": (request,)}
        ends = [self.message_end(self.requests[r]) for r in waited.get(event.kind, ())]
        return None if None in ends else max([now, *ends])

    def post(self, place, event):
        sends = event.kind.endswith("send")
        pair = (place[0], event.peer) if sends else (event.peer, place[0])
        key = (*pair, event.channel, self.posts[(*pair, event.channel, sends)])
        self.posts[(*pair, event.channel, sends)] += 1
        self.sides[key][sends] = (self.clock[place], event.nbytes)
        return key

    def message_end(self, key):
        both = self.sides[key]
        if len(both) < 2:
            return None
        return self.arrival(key, both[True][1], max(t for t, _ in both.values()))


def keyed(timeline):
    """Messages by (src, dst, channel, how many the sender's program sends before on it)."""
    seen, found = defaultdict(int), {}
    events = (e for program in timeline.trace.programs.values() for e in program)
    order = {id(e): i for i, e in enumerate(events)}
    for m in sorted(timeline.messages, key=lambda m: order[id(m.send)]):
        key = (m.src, m.dst, m.channel)
        found[(*key, seen[key])] = m
        seen[key] += 1
    return found


@settings(max_examples=200, deadline=None)
@given(programs(), MACHINES)
def test_clocks_are_those_of_the_program(trace, machine):
    """All is delivered, and given when messages end every stream is where its program says."""
    timeline = replay(trace, machine)
    messages = keyed(timeline)
    sends = sum(e.kind in ("send", "isend") for p in trace.programs.values() for e in p)
    assert len(messages) == sends == len(timeline.messages)
    expected = Evaluator(trace, lambda key, nbytes, posted: messages[key].end)
    assert timeline.finished == expected.clock
    assert {key: m.posted for key, m in messages.items()} == expected.posted
    for m in timeline.messages:
        assert m.end == m.start + machine.route(m.src, m.dst).seconds(m.nbytes)
        assert m.send.nbytes == m.recv.nbytes == m.nbytes


@settings(max_examples=200, deadline=None)
@given(programs(), MACHINES)
def test_makespan_is_at_least_the_busiest_port_and_the_longest_chain(trace, machine):
    timeline = replay(trace, machine)
    load = defaultdict(float)
    for place, program in trace.programs.items():
        for e in program:
            if e.kind in ("send", "isend"):
                route = machine.route(place[0], e.peer)
                for name in route.resources:
                    load[name] += route.seconds(e.nbytes)
    chain = Evaluator(trace, lambda key, nbytes, posted:
                      posted + machine.route(*key[:2]).seconds(nbytes))
    bound = max([*load.values(), *chain.clock.values()])
    assert timeline.makespan >= bound * (1 - 1e-12)
    assert timeline.link_seconds.keys() == load.keys()
    assert all(abs(timeline.link_seconds[name] - load[name]) <= 1e-9 * load[name] for name in load)


@settings(max_examples=200, deadline=None)
@given(programs(), MACHINES)
def test_ports_carry_one_message_and_the_oldest_goes_first(trace, machine):
    """A message waits only while its route is held by one that was there first or was older."""
    timeline = replay(trace, machine)
    uses = defaultdict(list)
    for m in timeline.messages:
        for name in machine.route(m.src, m.dst).resources:
            uses[name].append(m)
    for messages in uses.values():
        ordered = sorted(messages, key=lambda m: m.start)
        assert all(a.end <= b.start for a, b in zip(ordered, ordered[1:], strict=False))
    for m in timeline.messages:
        route = machine.route(m.src, m.dst)
        mine = [x for name in route.resources for x in uses[name] if x is not m]
        for instant in {m.posted, *(x.end for x in mine), *(x.start for x in mine)}:
            if m.posted <= instant < m.start:
                assert any(x.start <= instant < x.end and (x.start < instant or _age(x) <= _age(m))
                           for x in mine)


def _age(m):
    return (m.posted, m.src, m.dst)


@settings(max_examples=50, deadline=None)
@given(programs(), MACHINES)
def test_two_replays_are_equal_whatever_the_order_of_the_dict(trace, machine):
    turned = Trace(trace.world_size, dict(reversed(trace.programs.items())))
    first, again, other = replay(trace, machine), replay(trace, machine), replay(turned, machine)
    for timeline in (again, other):
        assert first.spans == timeline.spans and first.messages == timeline.messages
        assert first.finished == timeline.finished and first.link_bytes == timeline.link_bytes
