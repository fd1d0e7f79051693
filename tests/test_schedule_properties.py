"""Random legal orders on the replay engine, against a simulator that knows nothing of messages."""

from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.machine import unit
from course_lib.schedule import (
    Op,
    Schedule,
    bidirectional,
    dualpipe,
    gpipe,
    interleaved,
    linear,
    lower,
    naive,
    needs,
    one_f_one_b,
    output,
    problem,
    programs,
    time_schedule,
    v_shape,
)


def simulate(schedule, seconds, latency=0.0):
    """(start, end) of every op: each rank in order, as early as its inputs are there."""
    place, at, clock, done = schedule.placement, [0] * len(schedule), [0.0] * len(schedule), {}
    moved = True
    while moved:
        moved = False
        for rank, ops in enumerate(schedule):
            while at[rank] < len(ops):
                op = ops[at[rank]]
                inputs = [output(need) for need in needs(op, place.num_stages)]
                if not all(need in done for need in inputs):
                    break
                ready = [done[need][1] + latency * (place.rank(need.stage, need.mb) != rank)
                         for need in inputs]
                start = max([clock[rank], *ready])
                clock[rank] = start + seconds[op.kind]
                done[output(op) if op.kind != "W" else op] = (start, clock[rank])
                at[rank] += 1
                moved = True
    return done, all(at[rank] == len(ops) for rank, ops in enumerate(schedule))


@st.composite
def legal(draw):
    """A random order in which nobody has to wait: any op whose needs have run may come next."""
    p, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    place = draw(st.sampled_from([linear(p), interleaved(p, 2), v_shape(p), bidirectional(p, m)]))
    todo = []
    for stage in range(place.num_stages):
        for mb in range(m):
            halves = draw(st.booleans())
            todo += [Op(stage, kind, mb) for kind in ("FIW" if halves else "FB")]
    ranks, done = [[] for _ in range(p)], set()
    while todo:
        ready = [op for op in todo if all(output(need) in done
                                          for need in needs(op, place.num_stages))]
        op = draw(st.sampled_from(ready))
        todo.remove(op)
        done.add(output(op))
        ranks[place.rank(op.stage, op.mb)].append(op)
    return Schedule(ranks, place)


TIMES = st.fixed_dictionaries({kind: st.sampled_from([1.0, 2.0, 3.0, 5.0]) for kind in "FBIW"})


def test_the_program_of_a_small_pipeline():
    words = [[" ".join([kind, *map(str, ops)]) for kind, ops, _ in program]
             for program in programs(one_f_one_b(2, 2))]
    assert words[0] == [
        "run 0F0", "isend 0F0", "irecv 1I0", "run 0F1", "isend 0F1",
        "received 1I0", "sent 0F0", "irecv 1I1", "run 0B0", "received 1I1", "sent 0F1", "run 0B1"]
    assert words[1] == [
        "irecv 0F0", "received 0F0", "run 1F0", "irecv 0F1", "run 1B0", "isend 1I0",
        "received 0F1", "run 1F1", "run 1B1", "isend 1I1", "sent 1I0", "sent 1I1"]


def test_receives_are_posted_in_the_order_of_the_sends():
    """Also where the receiver needs them in another order, as every odd rank of `naive` does."""
    first, second = programs(naive(2, 3))
    sent = [ops for kind, ops, _ in first if kind == "isend"]
    assert [ops for kind, ops, _ in second[:3]] == sent and second[3].kind == "received"
    assert second[3].ops == sent[-1:][0]


def test_lowered_events_carry_what_a_run_records():
    trace = lower(gpipe(2, 1), lambda ops: 2.0, nbytes=24, dtype="bfloat16", channel="world/1.0")
    sent = [e for e in trace.program(0) if e.kind == "isend"]
    assert [e.key for e in sent] == [("isend", 1, 24, "bfloat16", "", "world/1.0", "")]
    assert [(e.label, e.seconds) for e in trace.program(1) if e.kind == "compute"] == [
        ("1F0", 2.0), ("1B0", 2.0)]
    assert trace.bytes_sent(0) == trace.bytes_sent(1) == 24


def test_an_overlapped_pair_is_one_computation():
    timeline = time_schedule(dualpipe(2, 4), {"F": 1, "B": 2, "I": 1, "W": 1, "F&B": 2.5})
    labels = [e.label for e in timeline.trace.program(0) if "&" in e.label]
    assert labels and all(timeline.ops[f] == timeline.ops[b]
                          for f, b in timeline.schedule.overlapped.items())
    assert labels[0] == "1F3&0B0"


def test_a_machine_times_the_transfers():
    timeline = time_schedule(gpipe(2, 1), machine=unit(latency=1.0), nbytes=3)
    assert timeline.makespan == 2 * 3 + 2 * (1 + 3)
    assert timeline.machine == "unit"


@settings(max_examples=60, deadline=None)
@given(legal(), TIMES)
def test_any_legal_order_validates_and_takes_its_critical_path(schedule, times):
    assert problem(schedule) == ""
    timeline = time_schedule(schedule, times)
    expected, complete = simulate(schedule, times)
    assert complete
    assert {output(op) if op.kind != "W" else op: span for op, span in timeline.ops.items()} == (
        expected)
    longest = {}  # chain of ops that ends with this one, were there a rank for every op
    for op in sorted(timeline.ops, key=timeline.ops.get):
        before = [longest[output(need)] for need in needs(op, schedule.placement.num_stages)]
        longest[output(op)] = max(before, default=0.0) + times[op.kind]
    assert timeline.makespan >= max(longest.values())
    for rank in range(len(schedule)):
        assert timeline.busy(rank) <= timeline.span(rank) <= timeline.makespan


@settings(max_examples=60, deadline=None)
@given(legal(), TIMES, st.sampled_from([0.5, 4.0]))
def test_transfers_only_ever_delay(schedule, times, latency):
    timeline = time_schedule(schedule, times, latency)
    ideal, _ = simulate(schedule, times, latency)
    for op, (start, _) in timeline.ops.items():
        assert start >= ideal[output(op) if op.kind != "W" else op][0]
    sends = {(r, e.requests[0]) for (r, _), program in timeline.trace.programs.items()
             for e in program if e.kind == "isend"}
    last = [max(timeline.ops[op][1] for op in ops) for ops in schedule]
    for s in timeline.spans:  # a wait for a send only ever blocks when all is computed
        assert s.kind != "wait" or s.start >= last[s.rank] or (
            (s.rank, s.event.requests[0]) not in sends)


@settings(max_examples=60, deadline=None)
@given(legal(), st.randoms(use_true_random=False))
def test_a_shuffled_order_is_legal_exactly_when_it_can_run(schedule, random):
    for ops in schedule:
        a, b = random.randrange(len(ops) + 1), random.randrange(len(ops) + 1)
        part = ops[min(a, b):max(a, b)]
        random.shuffle(part)
        ops[min(a, b):max(a, b)] = part
    _, complete = simulate(schedule, dict.fromkeys("FBIW", 1.0))
    assert (problem(schedule) == "") == complete
