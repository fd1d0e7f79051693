"""A dry run writes the trace that the real run writes, up to the clock; what it cannot know, it
refuses.
"""

import json
import sys
import time

import cloudpickle
import pytest
import torch
from torch import nn

from course_lib import costs, dry_run, replay, run_ranks
from course_lib.collectives import (
    all_gather,
    all_reduce,
    barrier,
    broadcast,
    naive_all_reduce,
    reduce_scatter,
    ring_all_reduce,
)
from course_lib.dry import ValueNeeded
from course_lib.launch.errors import RankFailure
from course_lib.machine import unit
from course_lib.virtual_time import ReplayDeadlock

# Ranks get this file's functions by value: they need not import what only tests import
cloudpickle.register_pickle_by_value(sys.modules[__name__])
HANG = 60.0  # seconds


def keys(trace):
    return {where: [e.key for e in program] for where, program in trace.programs.items()}


def assert_same(real, dry):
    """Event by event, with the first difference in the message."""
    real, dry = keys(real), keys(dry)
    assert real.keys() == dry.keys()
    for where in real:
        for i, pair in enumerate(zip(real[where], dry[where])):
            assert pair[0] == pair[1], f"{where} event {i}: real {pair[0]}, dry {pair[1]}"
        assert len(real[where]) == len(dry[where]), where


def everything(group, x, model):
    """Model, optimizer, collectives, plain messages, subgroups, a background stream, a result."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    with group.label("forward"):
        loss = model(x).pow(2).mean()
    loss.backward()
    for name, p in model.named_parameters():
        all_reduce(p.grad, group, op="mean", name=name)
    optimizer.step()
    optimizer.zero_grad()
    naive_all_reduce(torch.ones(5), group)
    stream, bucket = group.stream("comm"), torch.ones(100)
    job = stream.submit(ring_all_reduce, bucket, stream.group)
    y = model(x)
    job.wait()
    part = group.split([[r for r in range(group.size) if r % 2 == odd] for odd in (0, 1)]
                       if group.size > 1 else [[0]])
    barrier(part)
    kept = all_gather(torch.ones(group.rank + 1), part)
    right, left = (group.rank + 1) % group.size, (group.rank - 1) % group.size
    if group.size > 1:
        sent = group.isend(torch.ones(3, 4), right)
        group.recv(torch.empty(3, 4), left)
        sent.wait()
    reduce_scatter([torch.ones(i) for i in range(group.size)], group)
    broadcast(y.detach(), group, root=group.size - 1)
    return kept[0], y


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
def test_equals_the_real_run(world_size):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 8))
    x = torch.randn(4, 8)
    real = run_ranks(everything, world_size, x, model).trace
    assert_same(real, dry_run(everything, world_size, x, model))
    assert {stream for _, stream in real.programs} == {"main", "comm"}


@pytest.mark.soak
def test_equals_the_real_run_every_time():
    model, x = nn.Linear(8, 8), torch.randn(4, 8)
    dry = dry_run(everything, 4, x, model)
    for _ in range(30):
        assert_same(run_ranks(everything, 4, x, model).trace, dry)


def test_calls_only_is_the_same_in_both():
    model, x = nn.Linear(8, 8), torch.ones(4, 8)
    assert_same(run_ranks(everything, 2, x, model, record="calls").trace,
                dry_run(everything, 2, x, model, record="calls"))


# -- replayed, against the closed forms --------------------------------------------------------


CLOSED = {
    "ring": (lambda x, g: ring_all_reduce(x, g), costs.ring_all_reduce_seconds, {}),
    "ring of 3 segments": (lambda x, g: ring_all_reduce(x, g, segments=3),
                           costs.ring_all_reduce_seconds, {"segments": 3}),
    "naive": (lambda x, g: naive_all_reduce(x, g), costs.naive_all_reduce_seconds, {}),
    "broadcast": (lambda x, g: broadcast(x, g), costs.broadcast_seconds, {}),
}


def check_closed_form(name, trace, world_size, nbytes):
    form, more = CLOSED[name][1:]
    for latency, bandwidth in ((0.0, 1.0), (3.0, 7.0)):
        want = form(nbytes, world_size, latency, bandwidth, **more)
        found = replay(trace, unit(latency, bandwidth)).makespan
        assert found == pytest.approx(want, rel=1e-12), (name, world_size, latency, bandwidth)


@pytest.mark.parametrize("world_size", [2, 3, 4, 5, 6, 7, 8])
def test_replay_of_a_real_run_gives_the_closed_form(world_size):
    n = 12 * world_size

    def work(group, name):
        CLOSED[name][0](torch.ones(n), group)

    for name in CLOSED if world_size in (2, 8) else ["ring", "naive"]:
        real = run_ranks(work, world_size, name).trace
        check_closed_form(name, real, world_size, 4 * n)
        assert_same(real, dry_run(work, world_size, name))


@pytest.mark.parametrize(("name", "world_size"), [
    *((name, W) for name in CLOSED for W in (16, 31)), ("naive", 64),
    pytest.param("ring", 64, marks=pytest.mark.soak)])
def test_replay_of_a_dry_run_gives_the_closed_form(name, world_size):
    n = 12 * world_size
    trace = dry_run(lambda group: CLOSED[name][0](torch.ones(n), group), world_size)
    check_closed_form(name, trace, world_size, 4 * n)


@pytest.mark.soak
def test_ring_of_256_ranks():
    began = time.monotonic()
    trace = dry_run(lambda group: ring_all_reduce(torch.ones(12 * 256), group), 256)
    took = time.monotonic() - began
    print(f"dry run of 256 ranks, {256 * 2 * 255:,} exchanges: {took:.1f} s")
    check_closed_form("ring", trace, 256, 4 * 12 * 256)
    assert took < HANG


def test_a_dry_run_does_not_notice_a_deadlock_but_its_replay_does():
    def work(group):
        peer = 1 - group.rank
        group.send(torch.ones(10), peer)
        group.recv(torch.empty(10), peer)

    with pytest.raises(ReplayDeadlock, match="0 -> 1 -> 0"):
        replay(dry_run(work, 2), unit())
    with pytest.raises(RankFailure, match="0 -> 1 -> 0"):
        run_ranks(work, 2)


# -- what needs values -------------------------------------------------------------------------


@pytest.mark.parametrize("look", [
    lambda x: x.sum().item(),
    lambda x: 1 if x.sum() > 0 else 0,
    lambda x: x.tolist(),
    lambda x: x.numpy(),
    lambda x: x.nonzero(),
    lambda x: x[x > 0],
    lambda x: x.cpu(),
])
def test_asking_for_a_value_is_refused(look):
    with pytest.raises(ValueNeeded, match="rank 0 needs the value of a tensor .* Use run_ranks"):
        dry_run(lambda group: look(torch.ones(3)), 2)


def test_real_tensors_from_elsewhere_are_refused_and_not_touched():
    outside = torch.ones(3)
    with pytest.raises(ValueError, match="real tensor of shape .* in a dry run: make it inside"):
        dry_run(lambda group: ring_all_reduce(outside, group), 2)
    with pytest.raises(ValueError, match="rank 0 computes with a real tensor"):
        dry_run(lambda group: torch.ones(3) + outside, 2)
    assert outside.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="record='all': must be"):
        dry_run(lambda group: None, 2, record="all")


def test_an_optimizer_beside_its_module_steps_the_same_parameters():
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()  # so that it has a state to copy

    def step(group, model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).sum().backward()
        optimizer.step()
        return [p is q for p, q in zip(model.parameters(), optimizer.param_groups[0]["params"])]

    run = run_ranks(step, 2, model, optimizer)
    assert run.results == [[True, True]] * 2
    assert_same(run.trace, dry_run(step, 2, model, optimizer))
    costs_of = [(e.flops, e.nbytes) for e in run.trace.program(0) if e.kind == "compute"]
    assert costs_of == [(e.flops, e.nbytes) for e in dry_run(step, 2, model, optimizer).program(0)
                        if e.kind == "compute"]


def test_streams_of_two_groups_are_two_streams():
    def work(group):
        part = group.split([list(range(group.size))])
        first, second = group.stream("comm"), part.stream("comm")
        second.submit(ring_all_reduce, torch.ones(1), second.group).wait()
        first.submit(ring_all_reduce, torch.ones(1000), first.group).wait()
        group.compute("step", seconds=1000)

    run = run_ranks(work, 2)
    assert run.trace.streams(0) == ["main", "comm", "comm of world/1.0"]
    assert replay(run.trace, unit()).makespan == 5008
    assert_same(run.trace, dry_run(work, 2))


def test_other_errors_stay_what_they_are():
    def work(group):
        raise RuntimeError("the metadata is wrong")

    with pytest.raises(RuntimeError, match="^the metadata is wrong$"):
        dry_run(work, 2)
    with pytest.raises(ValueError, match="world_size=0: must be"):
        dry_run(work, 0)


# -- for Perfetto ------------------------------------------------------------------------------


def test_to_chrome(tmp_path):
    model, x = nn.Linear(8, 8), torch.ones(4, 8)
    trace = run_ranks(everything, 3, x, model).trace
    trace.to_chrome(tmp_path / "run.json")
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    check_perfetto(events, {(r, s) for r in range(3) for s in ("main", "comm")},
                   sum(map(trace.messages_sent, range(3))))
    replay(trace, unit(1.0, 100.0)).to_chrome(tmp_path / "replayed.json")
    check_perfetto(json.loads((tmp_path / "replayed.json").read_text())["traceEvents"],
                   {(r, s) for r in range(3) for s in ("main", "comm")},
                   sum(map(trace.messages_sent, range(3))))


def check_perfetto(events, streams, messages):
    """pid = rank, tid = stream, slices nest, and each flow has two ends that lie in slices."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {(pid, name) for (pid, _), name in names.items()} == streams
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {
        f"rank {rank}" for rank, _ in streams}
    slices = {where: [] for where in names}
    for e in events:
        assert e["ph"] in "MXsf"
        if e["ph"] == "X":
            assert e["ts"] >= 0 and e["dur"] >= 0
            slices[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for rows in slices.values():
        open_until = []
        for start, end in sorted(rows, key=lambda row: (row[0], -row[1])):
            while open_until and open_until[-1] <= start + 1e-6:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-6, "slices overlap"
            open_until.append(end)
    last = max(end for rows in slices.values() for _, end in rows)
    flows = {}
    for e in events:
        if e["ph"] in "sf":
            flows.setdefault(e["id"], []).append(e)
            assert 0 <= e["ts"] <= last
            assert any(start <= e["ts"] <= end for start, end in slices[e["pid"], e["tid"]])
    assert len(flows) == messages > 0
    for ends in flows.values():
        assert [e["ph"] for e in ends] == ["s", "f"]
        assert ends[0]["ts"] <= ends[1]["ts"] and ends[0]["pid"] != ends[1]["pid"]
