"""Data parallelism equals one process on the whole batch, after every step, in all three ways."""

import pytest
import torch
from training import (
    CONFIG,
    STEPS,
    assert_equal_after_each_step,
    batches,
    flat,
    model,
    optimizer,
    single_process,
)

from course_lib import costs, replay, run_ranks
from course_lib.data_parallel import (
    MasterWeights,
    Overlap,
    average_gradients,
    average_gradients_flat,
    broadcast_parameters,
)
from course_lib.model import build, next_token_loss
from course_lib.viz import unit_steps

soak = pytest.mark.soak
GRID = [pytest.param(world_size, name, marks=[] if (world_size, name) in ((2, "sgd"), (3, "adam"))
                     else soak) for world_size in (1, 2, 3, 4, 8) for name in ("sgd", "adam")]


def train(group, how, name, accumulate=1):
    net, after = model(), []
    overlap = Overlap(net, group, bucket_bytes=2_000) if how == "overlap" else None
    step = optimizer(name, list(net.parameters()))
    for batch in batches(group.size, 2 * accumulate):
        parts = batch.chunk(group.size)[group.rank].chunk(accumulate)
        backward(net, parts, overlap)
        if how == "each":
            average_gradients(net, group)
        elif how == "flat":
            average_gradients_flat(net, group)
        else:
            overlap.finish()
        step.step()
        overlap.zero() if overlap else step.zero_grad()
        after.append(flat(net.parameters()))
    return after


def backward(net, parts, overlap):
    for part in parts[:-1]:
        if overlap:
            with overlap.no_sync():
                (next_token_loss(net, part) / len(parts)).backward()
        else:
            (next_token_loss(net, part) / len(parts)).backward()
    (next_token_loss(net, parts[-1]) / len(parts)).backward()


@pytest.mark.parametrize("world_size,name", GRID)
def test_equals_one_process(world_size, name):
    def train_all(group):  # one launch for all: each trains a model of its own
        return [train(group, how, name) for how in ("each", "flat", "overlap")]

    reference = single_process(world_size, name)
    results = run_ranks(train_all, world_size, record=False).results
    for case in range(3):
        assert_equal_after_each_step([mine[case] for mine in results], reference)


@pytest.mark.parametrize("world_size", [2, 4])
def test_flat_gradients_travel_in_one_all_reduce(world_size):
    trace = run_ranks(train, world_size, "flat", "sgd", record="calls").trace
    nbytes = sum(p.numel() for p in model().parameters()) * 8
    assert len(trace.calls(0)) == STEPS
    choice = costs.choose_all_reduce(nbytes, world_size)
    assert choice.algorithm == "recursive_doubling_all_reduce"
    assert trace.bytes_sent(0) == STEPS * nbytes * (world_size.bit_length() - 1)


@pytest.mark.parametrize("how", ["flat", "overlap"])
def test_accumulation_reduces_once(how):
    run = run_ranks(train, 2, how, "adam", accumulate=3)
    assert_equal_after_each_step(run.results, single_process(2, "adam", accumulate=3))
    plain = run_ranks(train, 2, how, "adam")
    assert run.trace.bytes_sent(0) == plain.trace.bytes_sent(0)


def test_first_bucket_leaves_before_the_backward_ends():
    trace = run_ranks(train, 2, "overlap", "sgd").trace
    main = trace.program(0)
    given = next(i for i, e in enumerate(main) if e.kind == "record")
    awaited = next(i for i, e in enumerate(main) if e.kind == "await")
    assert any(e.kind == "compute" and e.flops for e in main[given:awaited])
    assert [e.event for e in main if e.kind == "record"] == [
        f"comm:given{i + 1}" for i in range(sum(e.kind == "record" for e in main))]


def test_replayed_the_first_bucket_travels_while_the_backward_runs():
    trace = run_ranks(train, 2, "overlap", "sgd").trace
    timeline = replay(trace, unit_steps(trace))
    first = min(m.start for m in timeline.messages)
    step_ends = next(s.start for s in timeline.of(0, "main") if s.kind == "await")
    assert first < max(s.end for s in timeline.of(0, "main")
                       if s.kind == "compute" and s.end <= step_ends)
    assert timeline.exposed(0) < timeline.makespan - timeline.idle(0)


def unequal(group):
    """The weighted mean of gradients in two ways, of parts with 2 x 2 and 2 x 4 predicted tokens.
    """
    found = []
    for average in (average_gradients, average_gradients_flat):
        net = build(CONFIG, seed=group.rank)
        broadcast_parameters(net, group)
        tokens = batches(1)[0][:, :3 + 2 * group.rank]
        next_token_loss(net, tokens).backward()
        average(net, group, weight=tokens[:, 1:].numel())
        found.append(flat(p.grad for p in net.parameters()))
    return found


def test_a_mean_over_tokens_is_weighted_by_tokens():
    net = build(CONFIG, seed=0)
    tokens = batches(1)[0]
    losses = [next_token_loss(net, tokens[:, :n]) * 2 * (n - 1) for n in (3, 5)]
    (sum(losses) / 12).backward()
    want = flat(p.grad for p in net.parameters())
    for found in run_ranks(unequal, 2).results:
        for got in found:
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)


def test_a_parameter_without_gradient_counts_as_zero():
    def work(group, how):
        net = torch.nn.ModuleList([torch.nn.Linear(2, 1, bias=False) for _ in range(2)])
        overlap = Overlap(net, group, bucket_bytes=8) if how == "overlap" else None
        net[group.rank](torch.ones(1, 2)).sum().backward()  # each rank uses another layer
        overlap.finish() if overlap else average_gradients(net, group)
        return [layer.weight.grad.flatten().tolist() for layer in net]

    for how in ("each", "overlap"):
        assert run_ranks(work, 2, how).results == [[[0.5, 0.5], [0.5, 0.5]]] * 2


def mixed(group, how):
    """Weights after steps in 16 bits with masters in 32, each step an eighth of what 16 bits hold.
    """
    net = torch.nn.Linear(1, 3, bias=False).bfloat16()
    net.weight.data.fill_(1.0)
    overlap = Overlap(net, group) if how == "overlap" else None
    masters = MasterWeights(net, group, lambda ps: torch.optim.SGD(ps, lr=2.0**-11))
    for _ in range(9):
        net(torch.ones(1, 1, dtype=torch.bfloat16)).sum().backward()
        overlap.finish() if overlap else average_gradients(net, group)
        masters.step()
    return net.weight.flatten().tolist(), next(iter(masters.masters.values())).flatten().tolist()


@pytest.mark.parametrize("how", ["each", "overlap"])
def test_masters_add_up_what_sixteen_bits_round_away(how):
    assert torch.tensor(1 - 2.0**-11).bfloat16() == 1  # one step alone is lost
    master = 1 - 9 * 2.0**-11
    rounded = torch.tensor(master).bfloat16().item()
    assert rounded < 1
    assert run_ranks(mixed, 2, how).results == [([rounded] * 3, [master] * 3)] * 2


def test_mixed_precision_holds_sixteen_bytes_per_parameter():
    def work(group):
        net = build(CONFIG).bfloat16()
        masters = MasterWeights(net, group, lambda ps: optimizer("adam", ps))
        for batch in batches(2)[:2]:
            next_token_loss(net, batch.chunk(2)[group.rank]).backward()
            average_gradients(net, group)
            group.mark("averaged")
            masters.step(max_norm=0.3)

    held = run_ranks(work, 2).trace.held_at(0, "averaged")
    want = costs.zero_state_bytes([CONFIG.parameters], 2, 0)
    assert {kind: held[kind] for kind in want} == want


def test_bad_bucket_size_is_named():
    with pytest.raises(RuntimeError, match="bucket_bytes=0: must be a number of at least 1"):
        run_ranks(lambda group: Overlap(model(), group, bucket_bytes=0), 1)
