"""Replay against closed forms, hand-made examples, deadlocks, and a time limit."""

import time
from dataclasses import replace

import pytest

from course_lib import costs
from course_lib.machine import Machine, dgx_h100, laptop, unit
from course_lib.trace import Event, Trace
from course_lib.virtual_time import ReplayDeadlock, replay


def send(peer, nbytes=1, **more):
    return Event("send", peer=peer, nbytes=nbytes, **more)


def recv(peer, nbytes=1, **more):
    return replace(send(peer, nbytes, **more), kind="recv")


def isend(peer, nbytes, request, **more):
    return Event("isend", peer=peer, nbytes=nbytes, requests=(request,), **more)


def irecv(peer, nbytes, request, **more):
    return replace(isend(peer, nbytes, request, **more), kind="irecv")


def wait(*requests):
    return Event("wait", requests=requests)


def compute(seconds):
    return Event("compute", seconds=seconds, label="work")


def trace_of(*programs):
    """One program per rank; a program is a list, or a dict from stream to list."""
    trace = Trace(len(programs))
    for rank, program in enumerate(programs):
        streams = program if isinstance(program, dict) else {"main": program}
        for stream, events in streams.items():
            trace.programs[rank, stream] = list(events)
    return trace


def ring_program(r, W, nbytes, segments=1):
    """A ring all-reduce of 4-byte elements as it is recorded: exchange, add; then exchange."""
    piece, events = nbytes // W // segments, []
    for step in range(2 * (W - 1)):
        for _ in range(segments):
            n = len(events)
            events += [irecv((r - 1) % W, piece, n, channel="world#1"),
                       isend((r + 1) % W, piece, n + 1, channel="world#1"), wait(n, n + 1)]
            if step < W - 1:
                events.append(Event("compute", label="add", flops=piece // 4))
    call = dict(label="ring_all_reduce", channel="world#1")
    return [Event("begin", **call), *events, Event("end", **call)]


def ring(W, nbytes, segments=1):
    return trace_of(*[ring_program(r, W, nbytes, segments) for r in range(W)])


def naive(W, nbytes):
    root = [e for p in range(1, W) for e in
            (recv(p, nbytes), Event("compute", label="add", flops=nbytes // 4))]
    root += [send(p, nbytes) for p in range(1, W)]
    call = dict(label="naive_all_reduce", channel="world#1")
    root = [Event("begin", **call), *root, Event("end", **call)]
    return trace_of(root, *[[send(0, nbytes), recv(0, nbytes)] for _ in range(W - 1)])


def close(value):
    return pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("world_size", range(2, 65))
def test_ring_and_naive_are_their_closed_forms(world_size):
    W, n = world_size, 12 * world_size
    rates = dict(latency=0.3, bandwidth=1.0)
    machine = unit(latency=0.3)
    form = costs.ring_all_reduce_seconds(n, W, **rates)
    assert replay(ring(W, n), machine).makespan == close(form)
    timeline = replay(naive(W, n), machine)
    assert timeline.makespan == close(costs.naive_all_reduce_seconds(n, W, **rates))
    assert timeline.link_bytes["rank 0 out"] == costs.naive_all_reduce_bytes(n, W, rank=0)
    assert timeline.link_bytes["rank 1 out"] == costs.naive_all_reduce_bytes(n, W, rank=1)


@pytest.mark.parametrize("world_size", [2, 3, 7, 8, 16])
@pytest.mark.parametrize("segments", [1, 3])
def test_ring_with_segments_and_additions(world_size, segments):
    W, n = world_size, 12 * world_size
    machine = replace(unit(latency=0.1, bandwidth=2.0), gamma=4 * 0.05)  # 0.05 s a byte
    form = costs.ring_all_reduce_seconds(n, W, 0.1, 2.0, segments=segments, gamma=0.05)
    timeline = replay(ring(W, n, segments), machine)
    assert timeline.makespan == close(form)
    assert set(timeline.link_bytes.values()) == {costs.ring_all_reduce_bytes(n, W)}
    form = costs.naive_all_reduce_seconds(n, W, 0.1, 2.0, gamma=0.05)
    assert replay(naive(W, n), machine).makespan == close(form)


def test_an_add_outside_of_a_collective_is_charged_like_any_other():
    def program(label):
        return [Event("compute", label=label, flops=100)]

    assert replay(trace_of(program("add")), unit()).makespan == 100.0
    assert replay(trace_of(program("ad")), unit()).makespan == 100.0
    call = dict(label="all_reduce", channel="world#1")
    inside = [Event("begin", **call), *program("add"), *program("ad"), Event("end", **call)]
    assert replay(trace_of(inside + program("add")), unit()).makespan == 200.0


def test_a_machine_that_was_not_called_is_named():
    with pytest.raises(TypeError, match=r"must be a Machine; call it: unit\(\)"):
        replay(ring(2, 24), unit)
    with pytest.raises(TypeError, match="machine='unit': must be a Machine$"):
        replay(ring(2, 24), "unit")


def test_ring_is_as_slow_as_its_slowest_hop():
    n = 16 * 10**6
    inside, across = replay(ring(8, n), dgx_h100()), replay(ring(16, n), dgx_h100(2))
    additions = 7 * dgx_h100().compute_seconds(flops=n // 8 // 4, label="add")
    form = costs.ring_all_reduce_seconds(n, 8, 3.4e-6, 450e9)
    assert inside.makespan == close(form + additions)
    assert across.makespan > costs.ring_all_reduce_seconds(n, 16, 9.6e-6, 50e9)
    assert {name for name in across.link_bytes if "NIC" in name} == {
        "rank 7 NIC 7 out", "rank 8 NIC 0 in", "rank 15 NIC 7 out", "rank 0 NIC 0 in"}


def test_barrier_is_its_closed_form():
    for W in (2, 3, 5, 8):
        def program(r, W=W):
            hops = [2**k for k in range(costs.barrier_steps(W))]
            return [e for k, d in enumerate(hops) for e in (
                irecv((r - d) % W, 1, 2 * k), isend((r + d) % W, 1, 2 * k + 1),
                wait(2 * k, 2 * k + 1))]
        makespan = replay(trace_of(*map(program, range(W))), unit(latency=0.5)).makespan
        assert makespan == close(costs.barrier_seconds(W, 0.5, 1.0))


def test_ports_are_not_reserved_ahead():
    timeline = replay(trace_of(
        [isend(1, 10, 0), isend(2, 1, 1), wait(0, 1)],
        [recv(0, 10)],
        [irecv(0, 1, 0), irecv(3, 1, 1), wait(1), compute(5.0), wait(0)],
        [compute(3.0), send(2, 1)]), unit())
    assert timeline.makespan == 11.0
    assert [(m.src, m.dst, m.posted, m.start, m.end) for m in timeline.messages] == [
        (0, 1, 0, 0, 10), (3, 2, 3, 3, 4), (0, 2, 0, 10, 11)]


def test_a_blocked_message_does_not_hold_up_the_next():
    timeline = replay(trace_of(
        [isend(1, 5, 0), isend(2, 1, 1), isend(5, 1, 2), wait(0, 1, 2)], [recv(0, 5)],
        [irecv(3, 3, 0), irecv(4, 10, 1), irecv(0, 1, 2), wait(0, 1, 2)],
        [send(2, 3)], [compute(3.0), send(2, 10)], [recv(0, 1)]), unit())
    assert [(m.src, m.dst, m.start) for m in timeline.messages] == [
        (0, 1, 0), (3, 2, 0), (4, 2, 3), (0, 5, 5), (0, 2, 13)]


def test_oldest_first_then_source_then_destination_then_posting():
    late = trace_of([compute(1.0), send(3, 2)], [compute(0.5), send(3, 2)], [send(3, 2)],
                    [irecv(p, 2, p) for p in (0, 1, 2)] + [wait(0, 1, 2)])
    assert [m.src for m in replay(late, unit()).messages] == [2, 1, 0]
    tie = trace_of([isend(2, 1, 0), isend(1, 1, 1), isend(1, 1, 2, channel="b"), wait(0, 1, 2)],
                   [irecv(2, 1, 0), irecv(0, 1, 1, channel="b"), irecv(0, 1, 2), wait(0, 1, 2)],
                   [isend(1, 1, 0), irecv(0, 1, 1), wait(0, 1)])
    assert [(m.src, m.dst, m.channel, m.start) for m in replay(tie, unit()).messages] == [
        (0, 1, "b", 0), (0, 1, "", 1), (0, 2, "", 2), (2, 1, "", 2)]


def test_shared_link_carries_one_message_at_a_time():
    class Bridge(Machine):
        def route(self, src, dst):
            return replace(super().route(src, dst), links=("bridge",))

    pairs = trace_of([send(1, 4)], [recv(0, 4)], [send(3, 4)], [recv(2, 4)])
    bridge = Bridge("bridge", 0.0, 1.0, 1.0, 1.0)
    assert replay(pairs, unit()).makespan == 4.0
    timeline = replay(pairs, bridge)
    assert timeline.makespan == 8.0
    assert (timeline.link_bytes["bridge"], timeline.link_seconds["bridge"]) == (8, 8.0)


def test_streams_overlap_and_wait_for_events():
    program = {"main": [compute(2.0), Event("record", event="grad"), compute(3.0),
                        Event("await", event="reduced")],
               "comm": [Event("await", event="grad"), send(1, 4), Event("record", event="reduced")]}
    timeline = replay(trace_of(program, [recv(0, 4)]), unit())
    assert [(s.kind, s.start, s.end) for s in timeline.of(0, "main")] == [
        ("compute", 0, 2), ("compute", 2, 5), ("await", 5, 6)]
    assert [(s.kind, s.start, s.end) for s in timeline.of(0, "comm")] == [
        ("await", 0, 2), ("send", 2, 6)]
    assert timeline.finished == {(0, "main"): 6, (0, "comm"): 6, (1, "main"): 6}
    assert timeline.exposed(0) == 1.0


def test_memory_changes_when_the_program_passes():
    hold = dict(nbytes=8, category="activation")
    timeline = replay(trace_of([Event("alloc", **hold), recv(1, 3), Event("free", **hold)],
                               [send(0, 3)]), unit())
    assert [(t, held["activation"]) for t, held in timeline.memory(0)] == [(0, 8), (3, 0)]
    assert timeline.memory(1) == []


def test_given_seconds_stand_and_flops_are_charged():
    flops = Event("compute", flops=10**9, nbytes=10**9)
    assert replay(trace_of([compute(0.5), flops]), laptop()).makespan == close(0.5 + 0.1)


def test_stream_ends_with_its_last_message():
    timeline = replay(trace_of([isend(1, 5, 0)], [irecv(0, 5, 0)]), unit())
    assert timeline.makespan == 5.0 and timeline.spans == []


def deadlock(*programs):
    with pytest.raises(ReplayDeadlock) as error:
        replay(trace_of(*programs), unit())
    return str(error.value), error.value.graph


def test_send_meets_send():
    text, graph = deadlock([send(1, site=("a.py", 3)), recv(1)],
                           [send(0, site=("a.py", 7)), recv(0)])
    assert text == ("deadlock: 0 -> 1 -> 0\n"
                    "rank 0 waits in send to rank 1 at a.py:3\n"
                    "rank 1 waits in send to rank 0 at a.py:7")
    assert graph == {"world_size": 2,
                     "edges": [(0, 1, "send to rank 1"), (1, 0, "send to rank 0")],
                     "notes": {0: "waits in send to rank 1 at a.py:3",
                               1: "waits in send to rank 0 at a.py:7"}}


def test_everybody_receives_first():
    ranks = [[recv((r - 1) % 3), send((r + 1) % 3)] for r in range(3)]
    text, graph = deadlock(*ranks, [compute(1)])
    assert text.splitlines() == [
        "deadlock: 0 -> 2 -> 1 -> 0", "rank 0 waits in recv from rank 2",
        "rank 2 waits in recv from rank 1", "rank 1 waits in recv from rank 0"]
    assert graph["world_size"] == 4 and len(graph["edges"]) == 3


def test_peer_has_finished():
    text, graph = deadlock([recv(1)], [recv(2)], [compute(1.0)])
    assert text.splitlines() == [
        "deadlock: 0 -> 1 -> 2 (finished)", "rank 0 waits in recv from rank 1",
        "rank 1 waits in recv from rank 2", "rank 2 has finished"]
    assert graph["notes"][2] == "has finished"


def test_a_skipped_collective_names_the_call():
    rings = [ring_program(r, 3, 12) for r in range(3)]
    text, _ = deadlock(rings[0], rings[1], [])
    assert text.splitlines()[0] == "deadlock: 0 -> 2 (finished)"
    assert text.splitlines()[1] == (
        "rank 0 waits in recv from rank 2, within ring_all_reduce #1")


def test_deadlock_through_a_background_stream():
    streams = {"main": [Event("record", event="go"), Event("await", event="done")],
               "comm": [Event("await", event="go"), recv(1), Event("record", event="done")]}
    text, _ = deadlock(streams, [recv(0, channel="other"), send(0)])
    assert text.splitlines() == ["deadlock: 0 -> 1 -> 0", "rank 0 waits in await of stream comm",
                                 "rank 0 (stream comm) waits in recv from rank 1",
                                 "rank 1 waits in recv from rank 0"]


@pytest.mark.parametrize("programs, message", [
    ([[send(1, 8, site=("a.py", 3))], [recv(0, 4, site=("a.py", 9))]],
     "rank 0 at a.py:3 sends 8 bytes, rank 1 at a.py:9 receives 4 bytes"),
    ([[isend(1, 8, 0)], []], "isend with rank 1 on channel '', which rank 1 never receives"),
    ([[wait(3)]], "rank 0, stream main: waits for request 3, which the rank has not posted"),
    ([[Event("await", event="x")]], "awaits event 'x', which no stream of the rank records"),
    ([[send(0)]], "peer=0 in send of rank 0: must be another rank"),
    ([[send(5)], []], "peer=5 in send of rank 0: must be another rank in 0..1"),
    ([[compute(-1.0)]], "seconds=-1.0 of compute 'work': must be at least 0"),
    ([[Event("dance")]], "kind='dance': must be one of compute, send"),
])
def test_not_a_program(programs, message):
    with pytest.raises(ValueError) as error:
        replay(trace_of(*programs), unit())
    assert message in str(error.value)


def test_machine_too_small():
    with pytest.raises(ValueError, match="world_size=9: DGX H100 has 8 GPUs"):
        replay(ring(9, 36), dgx_h100())


@pytest.mark.soak
def test_256_ranks_in_time():
    trace = ring(256, 1024)
    start = time.perf_counter()
    timeline = replay(trace, unit())
    seconds = time.perf_counter() - start
    events = sum(map(len, trace.programs.values()))
    print(f"256-rank ring: {len(timeline.messages)} messages, {events} events in {seconds:.1f} s, "
          f"{events / seconds:,.0f} events/s")
    assert len(timeline.messages) == 130_560 and timeline.makespan == 2 * 255 * 4
    assert seconds < 50


def test_thousands_of_blocked_messages_are_not_scanned_again():
    """Rank 0's port frees 5,000 times while 10,000 messages to rank 1 wait for rank 1's port."""
    k = 5000
    trace = trace_of(
        [compute(1.0), *[isend(1, 1, i) for i in range(2 * k)],
         *[e for _ in range(k) for e in (send(2), compute(1.0))], wait(*range(2 * k))],
        [irecv(3, 3 * k, 0), *[irecv(0, 1, i) for i in range(1, 2 * k + 1)],
         wait(*range(2 * k + 1))],
        [recv(0) for _ in range(k)], [isend(1, 3 * k, 0), wait(0)])
    start = time.perf_counter()
    timeline = replay(trace, unit())
    seconds = time.perf_counter() - start
    print(f"{len(timeline.messages)} messages, {2 * k} of them blocked, in {seconds:.1f} s")
    assert [m.start for m in timeline.messages if m.dst == 1] == [0, *range(3 * k, 5 * k)]
    assert seconds < 10
