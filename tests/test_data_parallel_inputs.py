"""What data parallelism and the parameter server do with unusual models, loops and arguments."""

import pytest
import torch
from torch import nn

from course_lib import dry_run, run_ranks
from course_lib.collectives import all_gather
from course_lib.data_parallel import (
    MasterWeights,
    Overlap,
    average_gradients,
    average_gradients_flat,
    broadcast_parameters,
)
from course_lib.parameter_server import (
    pull_gradients,
    pull_parameters,
    serve_gradients,
    serve_parameters,
)

DECAY = {"lr": 0.1, "weight_decay": 0.5}


def said(call):
    """The text of the error that the call raises."""
    try:
        call()
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def layer():
    net = nn.Linear(2, 1, bias=False)
    net.weight.data.fill_(1.0)
    return net


def weights(net):
    return [round(v, 6) for p in net.parameters() for v in p.flatten().tolist()]


# -- the usual loop over Overlap -----------------------


def usual_loop(group, how, accumulate):
    net = nn.ModuleList([layer(), layer()])  # the second one is used in the first step only
    overlap, sgd = Overlap(net, group, bucket_bytes=8), torch.optim.SGD(net.parameters(), **DECAY)
    for step in range(3):
        for micro_batch in range(accumulate):
            x = torch.full((1, 2), 1.0 + group.rank + micro_batch)
            y = net[0](x) + (net[1](x) if step == 0 else 0)
            if micro_batch < accumulate - 1:
                with overlap.no_sync():
                    y.sum().backward()
            else:
                y.sum().backward()
        overlap.finish()
        sgd.step()
        overlap.zero() if how == "zero" else sgd.zero_grad(set_to_none=how == "none")
    return weights(net)


def test_every_way_to_zero_gradients_keeps_replicas_equal():
    def all_ways(group):
        return [[usual_loop(group, how, accumulate) for how in ("zero", "zeros", "none")]
                for accumulate in (1, 2)]

    results = run_ranks(all_ways, 2, record=False).results
    assert results[0] == results[1]
    for gradient, found in zip((1.5, 1.5 + 2.5), results[0]):
        first, second = 1.0, 1.0
        for step in range(3):
            first -= 0.1 * (gradient + 0.5 * first)
            second -= 0.1 * (gradient * (step == 0) + 0.5 * second)
        assert found == [[round(w, 6) for w in (first, first, second, second)]] * 3


def test_a_second_backward_before_finish_is_refused():
    def twice(group):
        net = layer()
        overlap = Overlap(net, group)
        net(torch.ones(1, 2)).sum().backward()
        text = said(lambda: net(torch.ones(1, 2)).sum().backward())
        overlap.finish()
        return text

    for text in run_ranks(twice, 2, record=False).results:
        assert text.startswith("RuntimeError: a second backward pass before finish()")
        assert "no_sync()" in text


# -- frozen parameters ---------------------------------


def half_frozen():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False))
    for p in net.parameters():
        p.data.fill_(1.0)
    net[0].weight.requires_grad_(False)
    return net


def with_decay(group, how):
    net = half_frozen()
    overlap = Overlap(net, group) if how == "overlap" else None
    step = (MasterWeights(net, group, lambda ps: torch.optim.SGD(ps, **DECAY)) if how == "masters"
            else torch.optim.SGD(net.parameters(), **DECAY))
    net(torch.full((1, 2), 1.0 + group.rank)).sum().backward()
    if how == "overlap":
        overlap.finish()
    elif how.startswith("serve"):
        serve, pull = {"serve": (serve_parameters, pull_parameters),
                       "serve gradients": (serve_gradients, pull_gradients)}[how]
        if group.rank > 0:
            pull(net, group)
        else:
            serve(net, step, group) if how == "serve" else serve(net, group)
    else:
        (average_gradients_flat if how == "flat" else average_gradients)(net, group)
    if how != "serve":
        step.step()
    return net[0].weight.grad is None, weights(net)


@pytest.mark.parametrize("how,vectors,gradient", [
    ("each", 1, 3.0), ("flat", 1, 3.0), ("overlap", 1, 3.0), ("masters", 1, 3.0),
    ("serve", 1, 4.0), ("serve gradients", 1, 4.0)])
def test_frozen_parameters_neither_travel_nor_change(how, vectors, gradient):
    run = run_ranks(with_decay, 2, how, record="calls")
    trained = round(1 - 0.1 * (gradient + 0.5), 6)
    assert run.results[1] == (True, [1.0] * 4 + [trained] * 2)
    assert run.trace.bytes_sent(1) == vectors * 2 * 4


def test_a_model_that_is_all_frozen_sends_nothing():
    def work(group):
        net = half_frozen()[:1]
        overlap = Overlap(net, group)
        average_gradients(net, group)
        average_gradients_flat(net, group)
        overlap.finish()

    assert run_ranks(work, 2, record="calls").trace.messages_sent(0) == 0


# -- strides, masters, arguments -----------------------


def strided(group):
    """Of each way: (equal to contiguous parameters' result, same strides as before)."""
    found = []
    for how in ("each", "flat", "overlap"):
        nets = []
        for layout in (torch.contiguous_format, torch.channels_last):
            torch.manual_seed(group.rank)
            net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Linear(3, 2))
            net[2].weight = nn.Parameter(torch.randn(3, 2).t())
            net[0].register_buffer("turned", torch.randn(2, 3).t())
            net.to(memory_format=layout)
            before = net[0].weight.stride(), net[2].weight.stride()
            broadcast_parameters(net, group)
            overlap = Overlap(net, group) if how == "overlap" else None
            net(torch.full((1, 2, 2, 2), 1.0 + group.rank)).square().sum().backward()
            if overlap:
                overlap.finish()
            else:
                (average_gradients if how == "each" else average_gradients_flat)(net, group)
            assert before == (net[0].weight.stride(), net[2].weight.stride())
            nets.append(torch.cat([t.detach().flatten() for p in net.parameters()
                                   for t in (p, p.grad)] + [net[0].turned.flatten()]))
        found.append(torch.allclose(*nets))
        others = all_gather(nets[1], group)
        found.append(all(torch.equal(other, nets[1]) for other in others))
    return found


def test_parameters_of_any_strides():
    assert run_ranks(strided, 2, record=False).results == [[True] * 6] * 2


def test_masters_follow_what_is_loaded_and_keep_the_rest():
    def work(group):
        net = nn.Linear(1, 2, bias=False).bfloat16()
        net.weight.data.fill_(1.0)
        masters = MasterWeights(net, group, lambda ps: torch.optim.SGD(ps, lr=2.0**-11))
        net.weight.grad = torch.ones_like(net.weight)
        masters.step()  # too little to be seen in 16 bits
        state = {"weight": torch.tensor([[3.0], [1.0]])}
        if group.rank == 0:
            net.load_state_dict(state)
        broadcast_parameters(net, group)
        masters.step()
        return net.weight.flatten().tolist(), masters.masters[net.weight].flatten().tolist()

    assert run_ranks(work, 2, record=False).results == [([3.0, 1.0], [3.0, 1 - 2.0**-11])] * 2


def refusals(group):
    net = layer()
    net.weight.grad = torch.ones_like(net.weight)
    masters = MasterWeights(net, group, lambda ps: torch.optim.SGD(ps, lr=0.1))
    calls = [lambda: average_gradients(net, group, weight=0),
             lambda: average_gradients_flat(net, group, weight=-1),
             lambda: average_gradients(net, group, weight=float("nan")),
             lambda: Overlap(net, group, bucket_bytes="25MB"),
             lambda: masters.step(max_norm=-1), lambda: masters.step(max_norm=0),
             lambda: [Overlap(net, group) for _ in range(2)]]
    return [said(call) for call in calls]


def test_bad_arguments_are_named():
    weight = "must be finite and at least 0"
    norm = "must be above 0, or None for no clipping"
    for found in run_ranks(refusals, 2, record=False).results:
        assert found == [f"ValueError: {text}" for text in (
            "weight=0 on every rank: must be above 0 on at least one", f"weight=-1: {weight}",
            f"weight=nan: {weight}", "bucket_bytes='25MB': must be a number of at least 1",
            f"max_norm=-1: {norm}", f"max_norm=0: {norm}", "model: has an Overlap already, and "
            "must have only one; make it once, before the first step")]


def test_a_dry_run_weighs_and_clips_without_values():
    def work(group):
        net = layer()
        masters = MasterWeights(net, group, lambda ps: torch.optim.SGD(ps, lr=0.1))
        net(torch.ones(1, 2)).sum().backward()
        average_gradients(net, group, weight=group.rank)
        average_gradients_flat(net, group, weight=3)
        masters.step(max_norm=1.0)
        return weights(net) if not net.weight.is_meta else None

    run, dry = run_ranks(work, 2, record="calls"), dry_run(work, 2, record="calls")
    assert run.results[0] == run.results[1]
    assert [e.key for e in dry.program(0)] == [e.key for e in run.trace.program(0)]
