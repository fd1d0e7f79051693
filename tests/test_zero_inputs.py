"""What ZeRO does with frozen parameters, unused units, dtypes, checkpoints and bad arguments."""

import pytest
import torch
from torch import nn
from training import flat
from zero_cases import STAGES, make, whole

from course_lib import costs, dry_run, run_ranks
from course_lib.zero import Zero3, units_of

DECAY = {"lr": 0.1, "weight_decay": 0.5}


def said(call):
    """The text of the error that the call raises."""
    try:
        call()
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def one_process(net, losses_of_step, ranks=2):
    """Train it on the mean over ranks of losses_of_step(net, step, rank); SGD with decay."""
    step = torch.optim.SGD(net.parameters(), **DECAY)
    for number in range(2):
        for rank in range(ranks):
            for loss in losses_of_step(net, number, rank):
                (loss / ranks).backward()
        for p in net.parameters():  # what got no gradient has a gradient of zero
            p.grad = torch.zeros_like(p) if p.grad is None and p.requires_grad else p.grad
        step.step()
        step.zero_grad()
    return flat(net.parameters())


def assert_equals_one_process(make_net, losses_of_step):
    def all_stages(group):
        found = {}
        for stage in STAGES:
            net = make_net()
            zero = STAGES[stage](net, group, lambda shards: torch.optim.SGD(shards, **DECAY))
            for number in range(2):
                for loss in losses_of_step(net, number, group.rank):
                    loss.backward()
                zero.step()
            found[stage] = whole(zero, net)
        return found

    want = one_process(make_net(), losses_of_step)
    for found in run_ranks(all_stages, 2, record=False).results:
        for stage in STAGES:
            torch.testing.assert_close(found[stage], want, msg=lambda m, s=stage: f"{s}: {m}")


# -- frozen parameters ---------------------------------


def frozen_parts():
    """Units: half frozen, all frozen, trained, without parameters, trained."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3), nn.Tanh(),
                        nn.Linear(3, 2)).double()
    net.units = list(net)
    for p in (net[0].weight, *net[1].parameters()):
        p.requires_grad_(False)
    return net


def test_frozen_parameters_stay_and_the_rest_is_as_in_one_process():
    def losses(net, step, rank):
        yield net(torch.full((1, 3), 1.0 + step + rank, dtype=torch.float64)).square().sum()

    start = frozen_parts()
    trained = one_process(frozen_parts(), losses)
    assert torch.equal(trained[:9], start[0].weight.flatten())
    assert not torch.equal(trained[9:12], start[0].bias)
    assert_equals_one_process(frozen_parts, losses)


@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_frozen_parameters_are_not_sent_or_sharded(stage):
    def work(group):
        net = frozen_parts()
        zero = make(stage, net, group)
        net(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
        zero.step()
        return [p.numel() for p in net.parameters()], [unit.name for unit in zero.units]

    run = run_ranks(work, 2)
    n = 8 * sum(2 * -(-size // 2) for size in (3, 12, 8))  # padded
    assert run.trace.bytes_sent(0) == costs.zero_sent_bytes(n, 2, int(stage))
    gone = stage == "3"
    assert run.results[0] == ([9, 0 if gone else 3, 9, 3, *([0] * 4 if gone else [9, 3, 6, 2])],
                              ["unit 0", "unit 2", "unit 4"])


# -- units that some passes leave out ------------------


class Pair(nn.Module):
    """Unit [b, u]: u is used if asked for."""

    def __init__(self):
        super().__init__()
        self.b, self.u = (nn.Linear(3, 3, bias=False) for _ in range(2))

    def forward(self, x, ask):
        return self.b(x) + (self.u(x) if ask else 0)


class Asked(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.units = nn.ModuleList([nn.Linear(3, 3, bias=False), Pair()])
        self.double()

    def forward(self, step, rank, ask):
        x = torch.full((1, 3), 1.0 + step + 2 * rank, dtype=torch.float64)
        return self.units[1](self.units[0](x), ask).square().sum()


@pytest.mark.parametrize("asked", [
    {(0, 0), (0, 1)}, {(0, 1)}, {(0, 0), (1, 1)}, set()], ids=str)  # of (rank, micro-batch)
def test_what_one_micro_batch_of_one_rank_leaves_out(asked):
    def losses(net, step, rank):
        for micro_batch in range(2):
            yield net(step + micro_batch, rank, (rank, micro_batch) in asked) / 2

    assert_equals_one_process(Asked, losses)


@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_units_that_nobody_uses_travel_as_often_as_the_others(stage):
    def work(group, accumulate):
        net = Asked()
        zero = make(stage, net, group)
        for micro_batch in range(accumulate):
            net(micro_batch, group.rank, False).backward()
        zero.step()

    n = 8 * 28
    for accumulate in (1, 2, 3):
        trace = dry_run(work, 2, accumulate, record="calls")
        want = costs.zero_sent_bytes(n, 2, int(stage), accumulate)
        assert trace.bytes_sent(0) == want, f"{accumulate} micro-batches"


def test_units_are_reduced_when_their_backward_pass_ends():
    def work(group):
        net = Asked()
        zero = make("2", net, group)
        net(0, group.rank, False).backward()
        return [unit.gradient is not None for unit in zero.units], zero.left

    assert run_ranks(work, 2, record=False).results == [([True, True], [])] * 2


# -- dtypes, checkpoints, arguments --------------------


def test_two_dtypes_in_a_unit_are_refused():
    def mixed():
        return nn.Sequential(nn.Linear(4, 4).bfloat16(), nn.LayerNorm(4))

    rule = ("an? .*, has parameters of bfloat16 and float32: must be of one dtype in each unit, "
            "because they lie in one tensor")
    net = mixed()
    with pytest.raises(ValueError, match=rf"model.units\[0\], {rule}"):
        units_of(net)
    net.units = list(net)
    assert units_of(net) == net.units

    def work(group):
        net, kept = mixed(), mixed()
        kept[1].requires_grad_(False)
        zero = make("1", kept, group)
        return (said(lambda: make("1", net, group)), [p.dtype for p in net.parameters()],
                [p.dtype for p in kept.parameters()], zero.units[0].part.dtype)

    dtypes = [torch.bfloat16] * 2 + [torch.float32] * 2
    for text, refused, frozen, shard in run_ranks(work, 2, record=False).results:
        assert text.startswith("ValueError: model.units[0], a Sequential, has parameters of bfloat")
        assert refused == frozen == dtypes and shard == torch.bfloat16


def loaded(group):
    """Of each stage: the state dict before a step of nothing, the weights after; texts said."""
    found, texts = [], []
    for stage in STAGES:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)).bfloat16()
        net.units = list(net)
        zero = STAGES[stage](net, group, lambda shards: torch.optim.SGD(shards, lr=2.0**-11))
        state = {name: torch.full_like(value, 2.0) for name, value in whole_state(zero, net)}
        load_whole(zero, net, state)
        read = dict(whole_state(zero, net))
        zero.step()
        found.append((all(torch.equal(read[name], state[name]) for name in state),
                      read[next(iter(read))].shape == (3, 3),
                      whole(zero, net).tolist() == [2.0] * 20))
        if isinstance(zero, Zero3):
            texts += [said(net.state_dict), said(net[1].state_dict),
                      said(lambda n=net, s=state: n.load_state_dict(s))]
            assert net[0].weight.sum() == 0 and net[0].weight.shape == (0,)
    return found, texts


def whole_state(zero, net):
    if not isinstance(zero, Zero3):
        return list(net.state_dict().items())
    with zero.whole():
        return list(net.state_dict().items())  # read when the units are sharded again


def load_whole(zero, net, state):
    if not isinstance(zero, Zero3):
        net.load_state_dict(state)
    else:
        with zero.whole():
            net.load_state_dict(state)


def test_checkpoints_are_read_and_loaded_whole():
    for found, texts in run_ranks(loaded, 2, record=False).results:
        assert found == [(True, True, True)] * len(STAGES)
        assert len(texts) == 6
        for i, text in enumerate(texts):
            assert text.startswith(f"RuntimeError: the parameters of unit {int(i % 3 == 1)} are "
                                   "sharded: call state_dict")


def test_reading_whole_parameters_leaves_the_masters_their_bits():
    def work(group):
        net = nn.Linear(1, 4, bias=False).bfloat16()
        net.weight.data.fill_(1.0)
        zero = Zero3(net, group, lambda shards: torch.optim.SGD(shards, lr=2.0**-11))
        net(torch.ones(1, 1, dtype=torch.bfloat16)).sum().backward()
        zero.step()
        with zero.whole():
            net.load_state_dict({"weight": torch.tensor([[1.0], [3.0], [1.0], [3.0]])})
        return zero.units[0].shard.tolist()

    kept = 1 - 2.0**-11
    assert run_ranks(work, 2, record=False).results == [[kept, 3.0]] * 2


def test_bad_norms_are_named_and_a_dry_run_clips():
    def work(group, max_norm=0.5):
        net = nn.Linear(3, 3)
        zero = make("1", net, group)
        net(torch.ones(1, 3)).sum().backward()
        zero.step(max_norm=max_norm)

    run, dry = run_ranks(work, 2, record="calls"), dry_run(work, 2, record="calls")
    assert [e.key for e in dry.program(0)] == [e.key for e in run.trace.program(0)]
    texts = run_ranks(lambda group: [said(lambda n=n: work(group, n)) for n in (-1, 0)], 2).results
    assert texts == [[f"ValueError: max_norm={n}: must be above 0, or None for no clipping"
                      for n in (-1, 0)]] * 2


def test_to_gather_and_release_computes_nothing_but_the_copy_of_the_own_shard():
    def work(group):
        zero = make("3", nn.Linear(4, 4, bias=False), group)
        group.mark("here")
        with zero.whole():
            pass

    events = dry_run(work, 2).program(0)
    since = next(i for i, e in enumerate(events) if e.event == "here")
    computed = [e.nbytes for e in events[since:] if e.kind == "compute"]
    assert computed == [3 * 8 * 4]  # copy_ is given two tensors and returns one: 8 float32 each
