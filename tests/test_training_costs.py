"""What training holds, sends and exposes: published figures, and runs replayed."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from course_lib import costs, dry_run, replay
from course_lib.data_parallel import Overlap
from course_lib.machine import unit
from course_lib.zero import Zero3

ROOFLINES = json.loads(
    (Path(__file__).parent / "reference" / "data_parallel_rooflines.json").read_text())


@pytest.mark.parametrize("row", ROOFLINES["rows"], ids=lambda row: row["strategy"])
def test_tokens_per_rank_are_the_published_ones(row):
    tokens = costs.hiding_tokens(row["flops"], row["bandwidth"], row["world_size"])
    assert abs(tokens - float(row["tokens"])) < 1


def test_state_bytes_add_up_to_sixteen_per_parameter():
    for stage in range(4):
        for world_size in (1, 2, 4):
            state = costs.zero_state_bytes([64, 32], world_size, stage)
            assert sum(state.values()) == costs.zero_memory_bytes(96, world_size, stage)


def test_state_bytes_are_padded_unit_by_unit():
    assert costs.zero_state_bytes([5, 7], 4, 3, moments=0) == {
        "parameter": 2 * 4, "gradient": 2 * 4, "optimizer": 4 * 4}
    assert costs.zero_state_bytes([5, 7], 4, 2, weight_bytes=4) == {
        "parameter": 4 * 16, "gradient": 4 * 4, "optimizer": 8 * 4}


def test_sent_bytes_by_stage_and_micro_batches():
    assert [costs.zero_sent_bytes(8, 4, stage) for stage in range(4)] == [12, 12, 12, 18]
    assert [costs.zero_sent_bytes(8, 4, stage, 5) for stage in range(4)] == [12, 12, 36, 90]
    assert costs.zero_sent_bytes(8, 1, 3, 5) == 0


class Timed(torch.autograd.Function):
    """Says how long a layer computes, forward and backward, wherever the trace is replayed."""

    @staticmethod
    def forward(ctx, x, weight, group, forward, backward):
        ctx.group, ctx.seconds, ctx.size = group, backward, weight.shape
        group.compute("forward", seconds=forward)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.group.compute("backward", seconds=ctx.seconds)
        return gradient.clone(), gradient.new_ones(ctx.size), None, None, None


class Layer(torch.nn.Module):
    def __init__(self, size, group, forward, backward):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(size))
        self.times = group, forward, backward

    def forward(self, x):
        return Timed.apply(x, self.weight, *self.times)


FORWARD, BACKWARD = (1.0, 3.0, 2.0, 5.0), (2.0, 9.0, 4.0, 7.0)
SIZES = (400, 1200, 800, 1600)  # elements
MACHINE = replace(unit(), latency=0.05, bandwidth=1600.0, flops=math.inf,
                  memory_bandwidth=math.inf)


def model(group):
    net = torch.nn.Sequential(*[Layer(*each) for each in zip(
        SIZES, [group] * len(SIZES), FORWARD, BACKWARD)])
    net.units = list(net)
    return net


def moving(world_size, phases):
    """Seconds of a ring all-gather or reduce-scatter (1 phase) or all-reduce (2) of each unit."""
    return [phases * (world_size - 1) * (0.05 + 4 * size / world_size / 1600.0) for size in SIZES]


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("slow", [0.1, 1.0, 10.0])
def test_exposed_seconds_of_zero_3_are_those_of_the_replay(world_size, slow):
    def step(group, prefetch):
        net = model(group)
        zero = Zero3(net, group, lambda shards: torch.optim.SGD(shards, lr=0.1), prefetch)
        net(torch.zeros(1, requires_grad=True)).sum().backward()
        zero.finish()

    machine = replace(MACHINE, bandwidth=MACHINE.bandwidth / slow, latency=0.05 * slow)
    gather = [slow * seconds for seconds in moving(world_size, 1)]
    for prefetch in (True, False):
        makespan = replay(dry_run(step, world_size, prefetch), machine).makespan
        want = costs.zero3_exposed_seconds(FORWARD, BACKWARD, gather, gather, prefetch)
        assert makespan - sum(FORWARD + BACKWARD) == pytest.approx(want)


@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("slow", [0.1, 1.0, 10.0])
def test_exposed_seconds_of_buckets_are_those_of_the_replay(world_size, slow, monkeypatch):
    from course_lib import data_parallel
    from course_lib.collectives import ring_all_reduce

    monkeypatch.setattr(data_parallel, "all_reduce", ring_all_reduce)  # the form's algorithm

    def step(group):
        net = model(group)
        overlap = Overlap(net, group, bucket_bytes=1)
        net(torch.zeros(1, requires_grad=True)).sum().backward()
        overlap.finish()

    machine = replace(MACHINE, bandwidth=MACHINE.bandwidth / slow, latency=0.05 * slow)
    reduce = [slow * seconds for seconds in moving(world_size, 2)]
    makespan = replay(dry_run(step, world_size), machine).makespan
    want = costs.ddp_exposed_seconds(BACKWARD, reduce)
    assert makespan - sum(FORWARD + BACKWARD) == pytest.approx(want)


def test_a_unit_hides_its_latency_from_the_critical_size_on():
    flops, latency, bandwidth, world_size = 1e12, 1e-5, 1e9, 8
    tokens = 2 * costs.hiding_tokens(flops, bandwidth, world_size)
    size = costs.hiding_parameters(tokens, world_size, flops, latency, bandwidth)
    for factor in (0.5, 1.0, 2.0):
        gather = costs.all_gather_seconds(2 * size * factor, world_size, latency, bandwidth)
        ratio = gather / (2 * size * factor * tokens / flops)
        assert (ratio > 1, ratio == pytest.approx(1), ratio < 1)[(0.5, 1.0, 2.0).index(factor)]
    few = costs.hiding_tokens(flops, bandwidth, world_size)
    assert costs.hiding_parameters(few, world_size, flops, latency, bandwidth) == math.inf


def test_the_noise_scale_is_found_from_two_batch_sizes():
    squared, trace = 3.0, 60.0  # |G|^2, tr(Sigma)
    small, big = (squared + trace / batch for batch in (2, 16))
    assert costs.noise_scale(2, 16, small, big) == pytest.approx(trace / squared)


def test_steps_and_examples_double_at_the_critical_batch():
    critical, steps = 50.0, 200.0
    assert costs.steps_needed(critical, critical, steps) == 2 * steps
    assert costs.examples_needed(critical, critical, critical * steps) == 2 * critical * steps
    for batch in (1.0, 20.0, 300.0):
        s = costs.steps_needed(batch, critical, steps)
        e = costs.examples_needed(batch, critical, critical * steps)
        assert e == pytest.approx(s * batch)
        assert (s / steps - 1) * (e / (critical * steps) - 1) == pytest.approx(1)


@pytest.mark.parametrize("call,message", [
    (lambda: costs.zero_state_bytes([1], 2, 4), "stage=4: must be 0, 1, 2 or 3"),
    (lambda: costs.zero_sent_bytes(1, 2, 1, 0), "micro_batches=0: must be an integer of at least"),
    (lambda: costs.noise_scale(8, 8, 1.0, 1.0), "small=8: must be less than big=8"),
    (lambda: costs.steps_needed(0, 1.0, 1.0), "batch=0: must be above 0"),
    (lambda: costs.hiding_tokens(1e12, 0), "bandwidth=0: must be above 0"),
    (lambda: costs.hiding_tokens(1e15, 1e11, 0), "world_size=0: must be an integer of at least 1"),
    (lambda: costs.hiding_tokens(1e15, 1e11, True), "world_size=True: must be an integer"),
    (lambda: costs.hiding_tokens("1e15", 1e11), "flops='1e15': must be a number"),
    (lambda: costs.zero3_exposed_seconds([1], [1, 1], [1, 1], [1, 1]),
     "backward=.1, 1.: must have as many units as forward, 1"),
    (lambda: costs.zero3_exposed_seconds([1], [1], [1, 1], [1], prefetch=False),
     "gather=.1, 1.: must have as many units as forward, 1"),
    (lambda: costs.zero3_exposed_seconds([], [], [], []), "forward=..: must have at least one"),
    (lambda: costs.ddp_exposed_seconds([1, 1], [1]), "all_reduce=.1.: must have as many units"),
    (lambda: costs.ddp_exposed_seconds([1], [-1]), "all_reduce.0.=-1: must be at least 0"),
    (lambda: costs.noise_scale(1, 2, 4, 2), "small_squared_norm=4: must be at least"),
    (lambda: costs.noise_scale(1, 2, 4, 1), "small_squared_norm=4: must be at least"),
    (lambda: costs.noise_scale(1, 2, 1, 2), "small_squared_norm=1: must be at least"),
    (lambda: costs.zero_state_bytes([-8], 4, 3), "units.0.=-8: must be an integer of at least 0"),
    (lambda: costs.zero_state_bytes([8], 4, 3, moments=-1), "moments=-1: must be an integer of"),
    (lambda: costs.zero_state_bytes([8], 4, 1.0), "stage=1.0: must be 0, 1, 2 or 3"),
    (lambda: costs.zero_memory_bytes(8, 4, True), "stage=True: must be 0, 1, 2 or 3"),
    (lambda: costs.zero_memory_bytes("8", 4, 1), "psi='8': must be a number"),
    (lambda: costs.zero_memory_bytes(8, "4", 1), "world_size='4': must be an integer"),
])
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
