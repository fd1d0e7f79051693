"""Both synchronous forms equal one process; the asynchronous run equals its order, one by one."""

import sys

import cloudpickle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from training import CONFIG, assert_equal_after_each_step, flat, model, optimizer

from course_lib import costs, dry_run, replay, run_ranks, show
from course_lib.launch.errors import RankFailure
from course_lib.machine import laptop, stated, unit
from course_lib.model import next_token_loss
from course_lib.parameter_server import (
    Clock,
    arrival_order,
    idle_shares,
    may_start,
    own_seconds,
    pull_gradients,
    pull_parameters,
    serve,
    serve_gradients,
    serve_parameters,
    work,
)
from course_lib.viz import machine_picker
from course_lib.viz.staleness import staleness_chart

cloudpickle.register_pickle_by_value(sys.modules[__name__])
STEPS = 5
VECTOR = sum(p.numel() for p in model().parameters()) * 8  # bytes


@pytest.fixture(autouse=True)
def one_thread():
    """For models this small a second thread costs ten times what it brings, on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def batches(workers, unequal):
    """Per step, the rows of each worker: 2 of each, or 1, 2, 3 ..."""
    generator = torch.Generator().manual_seed(3)
    sizes = range(1, workers + 1) if unequal else [2] * workers
    shape = (sum(sizes), CONFIG.seq + 1)
    return [torch.randint(CONFIG.vocab, shape, generator=generator).split(list(sizes))
            for _ in range(STEPS)]


def train(group, form, name, unequal):
    """Parameters after each step; with the form "gradients" the server's never change."""
    net, after = model(), []
    step = optimizer(name, list(net.parameters()))
    for parts in batches(group.size - 1, unequal):
        weights = [len(part) for part in parts] if unequal else None
        if group.rank == 0 and form == "parameters":
            serve_parameters(net, step, group, weights)
        elif group.rank == 0:
            serve_gradients(net, group, weights)
        else:
            next_token_loss(net, parts[group.rank - 1]).backward()
            if form == "parameters":
                pull_parameters(net, group)
            else:
                pull_gradients(net, group)
                step.step()
                step.zero_grad()
        after.append(flat(net.parameters()))
    return after


def one_process(workers, name, unequal):
    net, after = model(), []
    step = optimizer(name, list(net.parameters()))
    for parts in batches(workers, unequal):
        step.zero_grad()
        next_token_loss(net, torch.cat(parts)).backward()
        step.step()
        after.append(flat(net.parameters()))
    return after


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_both_forms_equal_one_process_after_each_step(world_size):
    cases = [(form, name, unequal) for form in ("parameters", "gradients")
             for name in ("sgd", "adam") for unequal in (False, True)]

    def train_all(group):  # one launch for all: each trains a model of its own
        return [train(group, *case) for case in cases]

    results = run_ranks(train_all, world_size, record=False).results
    for number, (form, name, unequal) in enumerate(cases):
        reference = one_process(world_size - 1, name, unequal)
        mine = [result[number] for result in results]
        assert_equal_after_each_step(mine if form == "parameters" else mine[1:], reference)
        assert form == "parameters" or torch.equal(mine[0][0], mine[0][-1])


@pytest.mark.parametrize("form", ["parameters", "gradients"])
def test_the_servers_port_carries_what_the_costs_say_and_replay_takes_that_long(form):
    run = run_ranks(train, 4, form, "sgd", True, record="calls")
    sent = [run.trace.bytes_sent(rank) for rank in range(4)]
    assert sent == [3 * STEPS * VECTOR] + [STEPS * VECTOR] * 3
    assert sent[0] + sum(sent[1:]) == STEPS * costs.parameter_server_bytes(VECTOR, 3)
    one = costs.naive_all_reduce_seconds(VECTOR, 4, laptop().latency, laptop().bandwidth)
    assert replay(run.trace, laptop()).makespan == pytest.approx(STEPS * one)
    busy = replay(run.trace, unit()).link_seconds
    assert busy["rank 0 in"] == busy["rank 0 out"] == 3 * busy["rank 1 out"] == sent[0]
    dry = dry_run(train, 4, form, "sgd", True, record="calls")
    for rank in range(4):
        assert [e.key for e in dry.program(rank)] == [e.key for e in run.trace.program(rank)]


def test_costs_of_a_server():
    assert costs.parameter_server_bytes(100, 4) == 800
    for n, workers, said in ((-1, 4, "n=-1"), (1, 0, "workers=0")):
        with pytest.raises(ValueError, match=said):
            costs.parameter_server_bytes(n, workers)


# -- asynchronous --------------------


def part(worker, step):
    generator = torch.Generator().manual_seed(100 * worker + step)
    return torch.randint(CONFIG.vocab, (2, CONFIG.seq + 1), generator=generator)


def run_order(group, order, name="sgd", share=1.0):
    net = model()
    if group.rank == 0:
        step = optimizer(name, list(net.parameters()))
        return [[turn.staleness, flat(net.parameters())]
                for turn in serve(net, step, group, order)]

    def loss_of(net, step):
        return next_token_loss(net, part(group.rank, step)) * share

    work(net, loss_of, group, own_seconds(order, group))


def one_by_one(order, name, share=1.0):
    """The same turns in this process: after each push, (staleness counted anew, parameters)."""
    net, after, given_out, steps = model(), [], {}, {}
    step = optimizer(name, list(net.parameters()))
    for turn in order:
        if turn.kind == "pull":
            given_out[turn.worker] = (len(after), flat(net.parameters()))
            continue
        version, parameters = given_out.pop(turn.worker)
        now, k = flat(net.parameters()), steps.get(turn.worker, 0)
        torch.nn.utils.vector_to_parameters(parameters, net.parameters())
        net.zero_grad()
        (next_token_loss(net, part(turn.worker, k)) * share).backward()
        torch.nn.utils.vector_to_parameters(now, net.parameters())
        step.step()
        steps[turn.worker] = k + 1
        after.append([len(after) - version, flat(net.parameters())])
    return after


@pytest.mark.parametrize("world_size,bound,name",
                         [(4, None, "sgd"), (3, 1, "adam"),
                          pytest.param(2, None, "adam", marks=pytest.mark.soak)])
def test_an_asynchronous_run_equals_its_order_one_by_one(world_size, bound, name):
    seconds = [1.0, 1.7, 4.0][:world_size - 1]
    order = arrival_order(Clock(seconds, jitter=0.3, seed=5), 14, bound)
    run = run_ranks(run_order, world_size, order, name, record="calls")
    got, want = run.results[0], one_by_one(order, name)
    assert [s for s, _ in got] == [s for s, _ in want]
    for (_, ours), (_, theirs) in zip(got, want, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)
    assert sum(map(run.trace.bytes_sent, range(world_size))) == 14 * 2 * VECTOR
    assert run.trace.asynchronous
    timeline = replay(run.trace, stated())
    assert [m.end for m in timeline.messages] == pytest.approx([turn.time for turn in order])
    busy = [sum(own_seconds(order, _Ranked(r))) for r in range(1, world_size)]
    assert idle_shares(timeline) == pytest.approx([1 - b / order[-1].time for b in busy])
    with pytest.raises(ValueError, match="machine=laptop: who arrived when"):
        replay(run.trace, laptop())
    with pytest.raises(ValueError, match="machine=unit: who arrived when"):
        machine_picker(run, {"unit": unit()})
    assert "stated times" in repr(show(run))
    dry = dry_run(run_order, world_size, order, name, record="calls")
    assert [e.key for e in dry.program(0)] == [e.key for e in run.trace.program(0)]


class _Ranked:
    def __init__(self, rank):
        self.rank = rank


def test_bound_0_with_sgd_and_a_share_of_the_step_is_the_synchronous_step():
    """All compute from the same parameters; their gradients, each 1/N, are applied in turn."""
    order = arrival_order(Clock([1.0, 2.5, 1.2]), 3 * 4, bound=0)
    got = [parameters for _, parameters in one_by_one(order, "sgd", 1 / 3)][2::3]
    net = model()
    step = optimizer("sgd", list(net.parameters()))
    for k, ours in enumerate(got):
        step.zero_grad()
        next_token_loss(net, torch.cat([part(w, k) for w in (1, 2, 3)])).backward()
        step.step()
        torch.testing.assert_close(ours, flat(net.parameters()), rtol=1e-9, atol=1e-11)


@given(seconds=st.lists(st.floats(0.1, 20.0), min_size=1, max_size=6),
       bound=st.one_of(st.none(), st.integers(0, 4)), jitter=st.floats(0.0, 2.0),
       seed=st.integers(0, 99), updates=st.integers(1, 60))
@settings(max_examples=150, deadline=None)
def test_no_worker_starts_beyond_the_bound_and_none_waits_that_may_start(
        seconds, bound, jitter, seed, updates):
    workers = range(1, len(seconds) + 1)
    order = arrival_order(Clock(seconds, jitter, seed), updates, bound)
    assert order == arrival_order(Clock(seconds, jitter, seed), updates, bound)
    done, running, version, pulled = dict.fromkeys(workers, 0), {}, 0, 0
    for turn in order:
        if turn.kind == "pull":
            assert bound is None or done[turn.worker] - min(done.values()) <= bound
            assert turn.worker not in running
            running[turn.worker], pulled = (version, turn.time + turn.seconds), pulled + 1
            continue
        idle = [w for w in workers if w not in running and may_start(w, done, bound)]
        assert not idle or pulled == updates
        began, arrives = running.pop(turn.worker)
        assert turn.time == arrives and all(turn.time <= end for _, end in running.values())
        assert turn.staleness == version - began
        if bound is not None:
            assert turn.staleness <= (2 * bound + 1) * (len(seconds) - 1)
        version, done[turn.worker] = version + 1, done[turn.worker] + 1
    assert version == updates and not running


def test_equal_speeds_without_a_bound_give_a_staleness_of_the_others():
    order = arrival_order(Clock([1.0] * 4), 40)
    staleness = [turn.staleness for turn in order if turn.kind == "push"]
    assert staleness == [0, 1, 2] + [3] * 37


@pytest.mark.parametrize("call,said", [
    (lambda: Clock([]), "seconds="), (lambda: Clock([1.0, 0.0]), "seconds="),
    (lambda: Clock([1.0], jitter=-1.0), "jitter=-1"),
    (lambda: Clock([1.0]).arrival(), "no worker computes"),
    (lambda: arrival_order(Clock([1.0]), 0), "updates=0"),
    (lambda: arrival_order(Clock([1.0]), 1, bound=-1), "bound=-1")])
def test_what_a_clock_and_an_order_refuse(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_what_a_server_refuses():
    def refusals(group):
        net, said = model(), []
        step = optimizer("sgd", list(net.parameters()))
        calls = [lambda: serve_parameters(net, step, group, [1.0, 1.0]),
                 lambda: serve_gradients(net, group, [0.0]),
                 lambda: serve_gradients(net, group, [-1.0]),
                 lambda: list(serve(net, step, group, arrival_order(Clock([1.0] * 2), 2)))]
        for call in calls:
            try:
                call()
            except ValueError as error:
                said.append(str(error))
        return said

    said = run_ranks(refusals, 2, record=False).results[0]
    assert ["weights=" in text for text in said] == [True] * 3 + [False]
    assert said[3] == "order: has 2 workers, the group 1"
    with pytest.raises(RankFailure, match="world_size=1: must be at least 2"):
        run_ranks(train, 1, "parameters", "sgd", False)


def test_a_chart_sets_the_last_loss_over_the_mean_staleness():
    order = [turn for turn in arrival_order(Clock([1.0] * 2), 6) if turn.kind == "push"]
    run = [(turn, torch.tensor(2.0 ** -i)) for i, turn in enumerate(order)]
    figure = staleness_chart({"two": run, "one": run[:1]})
    points, two, one = figure.data
    assert list(points.x) == pytest.approx([5 / 6, 0]) and list(points.y) == [2.0 ** -5, 1.0]
    assert list(two.x) == [turn.time for turn in order] and list(one.y) == [1.0]
    assert figure.layout.yaxis.type == "log" and two.line.dash != one.line.dash
    lost = staleness_chart({"lost": [(order[0], float("inf"))]})
    assert lost.layout.yaxis.type is None
    for runs, said in (({}, "none"), ({"a": run, "b": []}, "b")):
        with pytest.raises(ValueError, match=f"runs: {said} without an update"):
            staleness_chart(runs)
