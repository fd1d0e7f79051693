"""ZeRO in every stage equals one process after every step."""

import pytest
import torch
from training import (
    CONFIG,
    assert_equal_after_each_step,
    batches,
    flat,
    model,
    optimizer,
    single_process,
)
from zero_cases import STAGES, make, train, whole

from course_lib import run_ranks
from course_lib.model import build, next_token_loss
from course_lib.zero import clip_gradients, units_of

soak = pytest.mark.soak
GRID = [pytest.param(world_size, name, marks=[] if (world_size, name) in ((2, "sgd"), (3, "adam"))
                     else soak) for world_size in (1, 2, 3, 4, 8) for name in ("sgd", "adam")]


@pytest.mark.parametrize("world_size,name", GRID)
def test_equals_one_process(world_size, name):
    def train_all(group):  # one launch for all: each trains a model of its own
        return [train(group, stage, name, max_norm)
                for max_norm in (None, 0.3) for stage in STAGES]

    references = [single_process(world_size, name, max_norm) for max_norm in (None, 0.3)]
    results = run_ranks(train_all, world_size, record=False).results
    for case in range(2 * len(STAGES)):
        assert_equal_after_each_step([mine[case] for mine in results],
                                     references[case // len(STAGES)])


@pytest.mark.parametrize("world_size", [2, pytest.param(4, marks=soak)])
def test_accumulation_equals_one_process_on_the_larger_batch(world_size):
    def train_all(group):
        return [train(group, stage, "adam", 0.3, accumulate=3) for stage in STAGES]

    reference = single_process(world_size, "adam", 0.3, accumulate=3)
    results = run_ranks(train_all, world_size, record=False).results
    for case in range(len(STAGES)):
        assert_equal_after_each_step([mine[case] for mine in results], reference)


class Spare(torch.nn.Module):
    """A unit of which half is used only on request."""

    def __init__(self):
        super().__init__()
        self.often, self.seldom, self.ask = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), True

    def forward(self, x):
        return self.often(x) + (self.seldom(x) if self.ask else 0)


def spare_model():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), Spare(), torch.nn.Linear(2, 1)).double()
    net.units = list(net)
    return net


def backward_of(net, rank, share=1.0):
    net.units[1].ask = rank == 0
    (net(torch.full((1, 2), rank + 1.0, dtype=torch.float64)).sum() * share).backward()


def test_a_parameter_that_one_rank_does_not_use_counts_as_zero_there():
    def work(group, stage):
        net = spare_model()
        zero = make(stage, net, group, "sgd")
        for _ in range(2):
            backward_of(net, group.rank)
            zero.step()
        return whole(zero, net)

    net = spare_model()
    step = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for rank in range(2):
            backward_of(net, rank, share=0.5)
        step.step()
        step.zero_grad()
    want = torch.cat([p.detach().flatten() for p in net.parameters()])
    results = run_ranks(lambda group: {stage: work(group, stage) for stage in STAGES}, 2,
                        record=False).results
    for got in results:
        for stage in STAGES:
            torch.testing.assert_close(got[stage], want, msg=lambda m, s=stage: f"stage {s}: {m}")


class Skips(torch.nn.Module):
    """Three units; a micro-batch may leave the middle one out."""

    def __init__(self):
        super().__init__()
        self.units = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x_BD, skip):
        for unit in [self.units[i] for i in ((0, 2) if skip else (0, 1, 2))]:
            x_BD = unit(x_BD)
        return (x_BD ** 2).sum()


@pytest.mark.parametrize("stage", STAGES)
def test_a_unit_left_out_of_some_micro_batches_counts_as_zero_in_them(stage):
    cases = [(True, True), (True, False), (False, True)]

    def inputs(rank, step):
        return torch.full((2, 4), 1.0 + rank + 0.5 * step)

    def train_all(group):
        found = []
        for skips in cases:
            torch.manual_seed(0)
            net = Skips()
            zero = make(stage, net, group, "sgd")
            for step, skip in enumerate(skips):
                net(inputs(group.rank, step), skip).backward()
            zero.step()
            found.append([unit.shard.detach().clone() for unit in zero.units])
        return found

    results = run_ranks(train_all, 2, record=False).results
    for case, skips in enumerate(cases):
        torch.manual_seed(0)
        net = Skips()
        for rank in range(2):
            for step, skip in enumerate(skips):
                (net(inputs(rank, step), skip) / 2).backward()
        optimizer("sgd", net.parameters()).step()
        for i, unit in enumerate(net.units):
            expected = flat(unit.parameters())
            shards = torch.cat([mine[case][i] for mine in results])[:len(expected)]
            torch.testing.assert_close(shards, expected, msg=f"{skips}, unit {i}")


def test_the_norm_is_that_of_torch_on_the_whole_gradient():
    def work(group):
        net = model()
        zero = make("1", net, group)
        next_token_loss(net, batches(2)[0].chunk(2)[group.rank]).backward()
        for unit in zero.units:
            unit.reduce_gradients()
            unit.shard.grad = unit.gradient
        norm = clip_gradients([unit.shard for unit in zero.units], 0.3, group)
        return norm, [unit.shard.grad.clone() for unit in zero.units]

    net = model()
    next_token_loss(net, batches(2)[0]).backward()
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.3).item()
    results = run_ranks(work, 2, record=False).results
    for found, _ in results:
        assert abs(found - norm) < 1e-12
    for i, module in enumerate(units_of(net)):
        want = torch.cat([p.grad.flatten() for p in module.parameters()])
        got = torch.cat([shards[i] for _, shards in results])
        torch.testing.assert_close(got[:len(want)], want)
        assert not got[len(want):].any()  # padding


def test_clipping_where_a_rank_has_no_gradient():
    def work(group):
        shard = torch.nn.Parameter(torch.zeros(2))
        if group.rank == 1:
            shard.grad = torch.tensor([3.0, 4.0])
        return clip_gradients([shard], 1.0, group), shard.grad

    (norm, nothing), (same, clipped) = run_ranks(work, 2, record=False).results
    assert norm == same == 5.0 and nothing is None
    torch.testing.assert_close(clipped, torch.tensor([0.6, 0.8]))


def in_bfloat16(group):
    """{stage: parameters in the end} of a model in 16 bits."""
    found = {}
    for stage in STAGES:
        net = build(CONFIG).bfloat16()
        found[stage] = train(group, stage, net=net, accumulate=2)[-1]
    return found


def test_all_stages_agree_in_mixed_precision():
    for got in run_ranks(in_bfloat16, 2, record=False).results:
        assert torch.equal(got["1"], got["1 by all-reduce"])
        assert torch.equal(got["2"], got["3"]) and torch.equal(got["3"], got["3 ahead"])
        assert got["1"].dtype == torch.bfloat16


@pytest.mark.parametrize("stage", list(STAGES))
def test_masters_add_up_what_sixteen_bits_round_away(stage):
    def work(group):
        net = torch.nn.Linear(1, 3, bias=False).bfloat16()
        net.weight.data.fill_(1.0)
        zero = STAGES[stage](net, group, lambda shards: torch.optim.SGD(shards, lr=2.0**-10))
        for _ in range(9):  # each update is a sixteenth of the distance to the next number below 1
            (net(torch.ones(1, 1, dtype=torch.bfloat16)) / 4).sum().backward()
            zero.step()
        if stage.startswith("3"):
            zero.units[0].unshard()
        return net.weight.tolist()

    rounded = torch.tensor(1 - 9 * 2.0**-12).bfloat16().item()
    assert rounded < 1 == torch.tensor(1 - 2.0**-12).bfloat16().item()
    assert run_ranks(work, 2, record=False).results == [[[rounded]] * 3] * 2


def test_stage_2_reduces_during_the_backward_and_stage_1_after():
    def order(stage):
        trace = run_ranks(train, 2, stage, steps=1, look=False).trace
        events = trace.program(0)
        sends = [i for i, e in enumerate(events) if e.kind == "isend"]
        marked = next(i for i, e in enumerate(events) if e.event == f"{stage}: after backward")
        last = max(i for i, e in enumerate(events[:marked]) if e.kind == "compute" and e.flops
                   and e.label != "add")
        return sends[0], last

    first_send, last_backward = order("2")
    assert first_send < last_backward
    first_send, last_backward = order("1")
    assert first_send > last_backward


def test_a_model_whose_units_share_a_weight_is_refused():
    class Tied:
        def __init__(self, net):
            self.units = [net, net]
            self.parameters = net.parameters

    with pytest.raises(ValueError, match="every parameter must be in exactly one unit"):
        units_of(Tied(model()))
