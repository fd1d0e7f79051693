"""ZeRO equals one process after every step, holds what the formula says, and moves what it says."""

import pytest
from training import (
    assert_equal_after_each_step,
    batches,
    flat,
    model,
    optimizer,
    single_process,
)

from course_lib import run_ranks
from course_lib.model import next_token_loss
from course_lib.zero import Zero1, Zero2, Zero3, units_of


def make(stage, net, group, name):
    def shards_optimizer(shards):
        return optimizer(name, shards)

    if stage < 3:
        return (Zero1 if stage == 1 else Zero2)(net, group, shards_optimizer)
    return Zero3(net, group, shards_optimizer, prefetch=stage == 3.5)


def train(group, stage, name, max_norm=None):
    net, after = model(), []
    zero = make(stage, net, group, name)
    for batch in batches(group.size):
        loss = next_token_loss(net, batch.chunk(group.size)[group.rank])
        loss.backward()
        del loss
        group.mark("after backward")
        zero.step(max_norm)
        after.append(whole(zero, net, stage))
    return after


def whole(zero, net, stage):
    if stage >= 3:
        for unit in zero.units:
            unit.unshard()
    values = flat(net.parameters())
    if stage >= 3:
        for unit in zero.units:
            unit.release()
    return values


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_equals_one_process(world_size, name):
    def train_all(group):  # one launch for all: each trains a model of its own
        return [train(group, stage, name, max_norm)
                for max_norm in (None, 0.3) for stage in (1, 2, 3, 3.5)]

    references = [single_process(world_size, name, max_norm) for max_norm in (None, 0.3)]
    results = run_ranks(train_all, world_size, record=False).results
    for case in range(8):
        assert_equal_after_each_step([mine[case] for mine in results], references[case // 4])


def shard_elements(world_size):
    return sum(-(-sum(p.numel() for p in unit.parameters()) // world_size)
               for unit in units_of(model()))


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_what_is_held_and_moved(world_size):
    whole_elements = sum(p.numel() for p in model().parameters())
    shard = shard_elements(world_size)
    held, sent = {}, {}
    for stage in (1, 2, 3):
        trace = run_ranks(train, world_size, stage, "adam").trace
        held[stage] = trace.held_at(0, "after backward")
        sent[stage] = trace.bytes_sent(0)
    assert held[2]["gradient"] == held[3]["gradient"] == 8 * shard  # stage 1: still whole, unnamed
    assert held[3]["parameter"] == 8 * shard
    assert held[1]["parameter"] == held[2]["parameter"] == 8 * whole_elements
    once = 8 * shard * (world_size - 1)
    assert sent[1] == sent[2] == 3 * 2 * once
    assert sent[3] == 3 * 4 * once  # forward, backward, gradients, and the test's own look


def test_stage_2_lowers_the_peak_of_gradients():
    peaks = {}
    for stage in (1, 2):
        trace = run_ranks(train, 4, stage, "sgd").trace
        peaks[stage] = trace.peak_bytes(0)
    assert peaks[2] < peaks[1]


def test_a_model_whose_units_share_a_weight_is_refused():
    class Tied:
        def __init__(self, net):
            self.units = [net, net]
            self.parameters = net.parameters

    with pytest.raises(ValueError, match="every parameter must be in exactly one unit"):
        units_of(Tied(model()))
