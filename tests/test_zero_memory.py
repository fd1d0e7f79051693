"""What ZeRO holds and sends, in recorded runs, is what the closed forms say, to the byte."""

import functools
import math

import pytest
from training import CONFIG, model
from zero_cases import STAGES, Window, train_all

from course_lib import costs, dry_run, run_ranks
from course_lib.model import build
from course_lib.zero import units_of

soak = pytest.mark.soak
SIZES = [sum(p.numel() for p in unit.parameters()) for unit in units_of(model())]
WORLD_SIZES = [2, 3, *(pytest.param(W, marks=soak) for W in (1, 4, 8))]
FEW = [2, *(pytest.param(W, marks=soak) for W in (1, 3, 4, 8))]
STEPS = 2


def number(stage):
    return int(stage[0])


def shards(world_size):
    """Elements of each unit's shard."""
    return [math.ceil(size / world_size) for size in SIZES]


def sixteen_bits():
    return build(CONFIG).bfloat16()


@functools.cache
def recorded(world_size, **kwargs):
    return run_ranks(train_all, world_size, **kwargs).trace


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_resident_bytes_are_the_formula(world_size):
    for stage in STAGES:
        want = costs.zero_state_bytes(SIZES, world_size, number(stage), weight_bytes=8)
        if stage == "3 ahead":  # the first unit's gradients are still on their way
            want["gradient"] -= 8 * shards(world_size)[0]
        for rank in range(world_size):
            got = Window.of(recorded(world_size), stage, rank).resident
            assert got == want, f"stage {stage}, rank {rank}"


@pytest.mark.parametrize("world_size", FEW)
def test_resident_bytes_in_mixed_precision_are_the_formula(world_size):
    for stage in ("1", "2", "3"):
        want = costs.zero_state_bytes(SIZES, world_size, number(stage))
        trace = recorded(world_size, make_model=sixteen_bits)
        assert Window.of(trace, stage).resident == want, f"stage {stage}"
        plain = costs.zero_memory_bytes(sum(SIZES), world_size, number(stage))
        assert 0 <= sum(want.values()) - plain <= 16 * world_size * len(SIZES)  # the padding


def ring_buffers(size, world_size):
    """Elements held while a unit's gradients are reduced: all of them end to end, padded, and in
    the ring three partial sums: one arrives, one leaves, and the one sent last is freed next.
    """
    shard = math.ceil(size / world_size)
    return world_size * shard + min(world_size - 1, 3) * shard


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_peaks_are_the_resident_bytes_and_the_largest_units(world_size):
    shard = shards(world_size)
    whole = [world_size * s for s in shard]
    pair = max(a + b for a, b in zip(whole, whole[1:]))
    parameter = {"1": sum(whole), "1 by all-reduce": sum(whole), "2": sum(whole),
                 "3": sum(shard) + max(whole), "3 ahead": sum(shard) + pair}
    # While unit k's gradients are whole, those of the units after it are in shards
    in_turn = max(SIZES[k] + sum(shard[k + 1:]) for k in range(len(SIZES)))
    for stage in STAGES:
        peak = Window.of(recorded(world_size), stage).peak
        assert peak["parameter"] == 8 * parameter[stage], f"stage {stage}"
        assert peak["optimizer"] == 8 * 2 * sum(shard)
        if stage in ("2", "3"):
            assert peak["gradient"] == 8 * in_turn, f"stage {stage}"
            buffers = max(ring_buffers(size, world_size) for size in SIZES)
            assert peak["buffer"] == 8 * buffers, f"stage {stage}"
        if stage.startswith("1"):
            assert peak["gradient"] == 8 * sum(SIZES)


def test_each_stage_lowers_the_peak_of_everything():
    totals = [Window.of(recorded(3), stage).total for stage in ("1", "2", "3")]
    assert totals[0] > totals[1] > totals[2]


@pytest.mark.parametrize("world_size", FEW)
@pytest.mark.parametrize("accumulate", [1, 3])
def test_traffic_is_the_formula(world_size, accumulate):
    """Stage 3 saves no gather: the first unit's backward would not need its weights, if its input
    needs no gradient, and gathers them all the same. So do the last unit's forward and backward.
    """
    n = 8 * world_size * sum(shards(world_size))
    trace = recorded(world_size, **({"accumulate": accumulate} if accumulate > 1 else {}))
    for stage in STAGES:
        want = costs.zero_sent_bytes(n, world_size, number(stage), accumulate)
        if stage == "1 by all-reduce":
            want *= 3 / 2
        for rank in range(world_size):
            sent = Window.of(trace, stage, rank).sent
            assert sent == STEPS * want, f"stage {stage}, rank {rank}"


def test_a_dry_run_holds_and_sends_the_same():
    dry = dry_run(train_all, 2)
    for stage in ("1", "2", "3"):
        assert Window.of(dry, stage) == Window.of(recorded(2), stage)


def test_clipping_costs_one_number_per_step():
    clipped = recorded(2, max_norm=0.3)
    assert Window.of(clipped, "2").sent - Window.of(recorded(2), "2").sent == STEPS * 8


def test_a_gradient_accumulated_in_mixed_precision_has_32_bits():
    """2 bytes per parameter of the shard more than zero_memory_bytes counts."""
    trace = recorded(2, make_model=sixteen_bits, accumulate=2)
    assert Window.of(trace, "2").resident["gradient"] == 4 * sum(shards(2))
