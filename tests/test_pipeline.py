"""The pipeline engine equals one process, after every step, for every schedule."""

import pytest
import torch
from pipelines import EIGHT, SIZES, TIED, TORCH, UNTIED, cases, net_of, tokens_of, torch_pipeline
from training import optimizer

from course_lib import run_ranks, schedule
from course_lib.data_parallel import average_gradients
from course_lib.model import Config, next_token_loss
from course_lib.pipeline import DeferWeights, naive_step, run_pipeline, split_stages
from course_lib.schedule import Op, linear, one_f_one_b, zb_h1


def one_process(config, rows, kind, steps=3):
    """(loss, gradients by name) after each step on the whole batch."""
    net, after = net_of(config), []
    step = optimizer(kind, list(net.parameters()))
    for tokens in tokens_of(rows, steps):
        loss = next_token_loss(net, tokens)
        loss.backward()
        after.append((loss.item(), {n: p.grad.clone() for n, p in net.named_parameters()}))
        step.step()
        step.zero_grad()
    return after


def train(group, plan, config, rows, kind, steps=3):
    stages, after = split_stages(net_of(config), plan.placement, group.rank), []
    step = optimizer(kind, list(stages.parameters()))
    for tokens in tokens_of(rows, steps):
        loss = run_pipeline(stages, plan, tokens[:, :-1], tokens[:, 1:], group)
        after.append((float(loss), {n: p.grad.clone() for n, p in stages.named_parameters()}))
        step.step()
        step.zero_grad()
    return after


def assert_equals_one_process(results, reference, what):
    """Loss and gradients after each step; a tied head has its gradient under the embedding's name.
    """
    for number, (loss, gradients) in enumerate(reference):
        got = sum(after[number][0] for after in results)
        assert got == pytest.approx(loss, rel=1e-9), f"{what} step {number}: loss"
        seen = set()
        for rank, after in enumerate(results):
            for name, gradient in after[number][1].items():
                name = name if name in gradients else "embedding.token.weight"
                seen.add(name)
                wrong = (gradient - gradients[name]).abs().max()
                assert wrong < 1e-10, f"{what} step {number} rank {rank} {name}: off by {wrong}"
        assert seen == set(gradients), what


def check_training(p, plans, config, kind):
    """One launch for all schedules: each trains a model of its own."""
    results = run_ranks(lambda group: [train(group, plan, config, 2 * m, kind)
                                       for (_, m), plan in plans.items()], p, record=False,
                        timeout=600).results
    references = {m: one_process(config, 2 * m, kind) for m in {m for _, m in plans}}
    for case, what in enumerate(plans):
        assert_equals_one_process([mine[case] for mine in results], references[what[1]],
                                  f"p={p} {what}")


@pytest.mark.parametrize(("p", "ms", "config", "kind"), [
    (1, [3], UNTIED, "sgd"), (2, [1, 4], TIED, "adam"),
    pytest.param(4, [8], EIGHT, "sgd", marks=pytest.mark.soak)])
def test_equals_one_process(p, ms, config, kind):
    check_training(p, cases(p, ms), config, kind)


@pytest.mark.soak
@pytest.mark.parametrize("p", [1, 2, 3, 4])
@pytest.mark.parametrize(("kind", "tied"), [("sgd", False), ("adam", True)])
def test_equals_one_process_for_few_and_many(p, kind, tied):
    config = Config(**SIZES, layers=2 * p, tied=tied)
    ms = {1, p - 1, p, p + 1, 2 * p, 4 * p} - {0}
    check_training(p, cases(p, sorted(ms)), config, kind)


def replicas(group):
    pipe = group.split([[0, 1], [2, 3]])
    copies = group.split([[0, 2], [1, 3]])
    stages, after = split_stages(net_of(TIED), linear(2), pipe.rank), []
    step = optimizer("adam", list(stages.parameters()))
    for tokens in tokens_of(8, 3):
        mine = tokens.chunk(2)[copies.rank]
        loss = run_pipeline(stages, zb_h1(2, 4), mine[:, :-1], mine[:, 1:], pipe)
        average_gradients(stages, copies)
        after.append((float(loss) / 2, {n: p.grad.clone() for n, p in stages.named_parameters()}))
        step.step()
        step.zero_grad()
    return after, [p.detach() for p in stages.parameters()]


def test_data_parallel_pipelines_stay_equal():
    results = run_ranks(replicas, 4).results
    assert_equals_one_process([after for after, _ in results], one_process(TIED, 8, "adam"), "2x2")
    for one, other in ((0, 2), (1, 3)):
        for a, b in zip(results[one][1], results[other][1]):
            assert torch.equal(a, b)


def naive_run(group):
    stages = split_stages(net_of(UNTIED), linear(group.size), group.rank)
    tokens = tokens_of(4)[0]
    loss = naive_step(stages, tokens[:, :-1], tokens[:, 1:], group)
    return [(float(loss), {n: p.grad for n, p in stages.named_parameters()})]


@pytest.mark.parametrize("p", [1, 3])
def test_plain_lines_equal_one_process(p):
    assert_equals_one_process(run_ranks(naive_run, p).results, one_process(UNTIED, 4, "sgd", 1), p)


def torchs_run(group, m):
    after = []
    for name in TORCH:
        stages = split_stages(net_of(EIGHT), getattr(schedule, name)(group.size, m).placement,
                              group.rank)
        tokens = tokens_of(2 * m)[0]
        loss = torch_pipeline(name, stages, m, group)(tokens[:, :-1], tokens[:, 1:])
        after.append([(loss, {n: p.grad for n, p in stages.named_parameters()})])
    return after


@pytest.mark.parametrize("p", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_pytorchs_schedules_give_the_same(p):
    results = run_ranks(torchs_run, p, 2 * p, record=False).results
    plans = cases(p, [2 * p], TORCH)
    ours = run_ranks(lambda group: [train(group, plan, EIGHT, 4 * p, "sgd", 1)
                                    for plan in plans.values()], p, record=False).results
    reference = one_process(EIGHT, 4 * p, "sgd", 1)
    for case, name in enumerate(TORCH):
        for who, all_ranks in (("torch", results), ("ours", ours)):
            assert_equals_one_process([mine[case] for mine in all_ranks], reference,
                                      f"{who} {name}")


def test_weight_gradients_wait_until_they_are_asked_for():
    def work(group):
        layer, x = torch.nn.Linear(3, 2).double(), torch.ones(4, 3).double().requires_grad_()
        (layer(x) ** 2).sum().backward()
        want = [layer.weight.grad, layer.bias.grad, x.grad]
        layer.zero_grad()
        x.grad = None
        with DeferWeights(group) as defer:
            y = layer(x)
        (y ** 2).sum().backward()
        assert layer.weight.grad is None and layer.bias.grad is None
        assert torch.equal(x.grad, want[2])
        defer.add_gradients()
        assert torch.equal(layer.weight.grad, want[0]) and torch.equal(layer.bias.grad, want[1])
        assert not layer.weight.grad.requires_grad and not defer.owed

    run_ranks(work, 1)


def test_frozen_weights_get_no_gradient():
    def work(group):
        stages = split_stages(net_of(UNTIED), linear(2), group.rank)
        frozen = dict(stages.named_parameters())[f"blocks.{2 * group.rank}.mlp.up.weight"]
        frozen.requires_grad_(False)
        tokens = tokens_of(4)[0]
        run_pipeline(stages, zb_h1(2, 2), tokens[:, :-1], tokens[:, 1:], group)
        return [(0.0, {n: p.grad for n, p in stages.named_parameters() if p is not frozen}),
                frozen.grad]

    (_, want), = one_process(UNTIED, 4, "sgd", 1)
    for (_, gradients), none in run_ranks(work, 2).results:
        assert none is None
        for name, gradient in gradients.items():
            assert (gradient - want[name]).abs().max() < 1e-10, name


def test_a_plain_list_runs_and_a_changed_one_is_judged_again():
    plan = [list(ops) for ops in one_f_one_b(2, 2)]

    def work(group):
        stages = split_stages(net_of(UNTIED), linear(2), group.rank)
        tokens = tokens_of(4)[0]
        run_pipeline(stages, plan, tokens[:, :-1], tokens[:, 1:], group)
        plan[1].remove(Op(1, "B", 1))
        with pytest.raises(schedule.IllegalSchedule, match="1B1 is missing"):
            run_pipeline(stages, plan, tokens[:, :-1], tokens[:, 1:], group)

    run_ranks(work, 2)


def test_wrong_input_is_named():
    def work(group):
        stages = split_stages(net_of(UNTIED), linear(1), 0)
        x = tokens_of(6)[0][:, :-1]
        for rows, plan, words in [
                ((6, 6), one_f_one_b(1, 4), "inputs has 6 rows: must .* multiple .* 4 micro-batch"),
                ((6, 4), one_f_one_b(1, 2), "targets has 4 rows: must have as many as inputs"),
                ((6, 6), one_f_one_b(2, 2), "schedule has 2 ranks: must have the group's 1"),
                ((6, 6), schedule.zb_v(1, 2), "schedule is for .*'v'.* must be .*'linear'")]:
            with pytest.raises(ValueError, match=words):
                run_pipeline(stages, plan, x[:rows[0]], x[:rows[1]], group)
        with pytest.raises(ValueError, match="layers=4: must be at least 9"):
            split_stages(net_of(UNTIED), linear(9), 0)
        with pytest.raises(ValueError, match=r"rank=2: must be in 0\.\.1"):
            split_stages(net_of(UNTIED), linear(2), 2)

    run_ranks(work, 1)


def accumulated(group, config, plan, frozen=""):
    """Gradients after one, two and three batches that are added up, and the loss."""
    stages, after = split_stages(net_of(config), plan.placement, group.rank), []
    for name, parameter in stages.named_parameters():
        parameter.requires_grad_(not (frozen and name.startswith(frozen)))
    tokens = tokens_of(4, 1)[0]
    for _ in range(3):
        loss = run_pipeline(stages, plan, tokens[:, :-1], tokens[:, 1:], group)
        after.append({n: p.grad.clone() for n, p in stages.named_parameters()
                      if p.grad is not None})
    return after, float(loss)


@pytest.mark.parametrize(("plan", "config"), [(one_f_one_b(2, 2), TIED),
                                              (schedule.dualpipe(2, 4), UNTIED)])
def test_batches_add_up_on_both_ranks_of_a_shared_parameter(plan, config):
    for after, _ in run_ranks(accumulated, 2, config, plan, record=False).results:
        for times, grads in enumerate(after, 1):
            assert all(torch.allclose(grads[n], times * after[0][n]) for n in grads)


@pytest.mark.parametrize("plan", [one_f_one_b(2, 2), zb_h1(2, 2)])
def test_frozen_parameters_get_no_gradient(plan):
    whole = [r[0][0] for r in run_ranks(accumulated, 2, UNTIED, plan, record=False).results]
    for frozen in ("embedding", "blocks.0"):
        results = run_ranks(accumulated, 2, UNTIED, plan, frozen, record=False).results
        for mine, (after, _) in zip(whole, results):
            assert set(after[0]) == {n for n in mine if not n.startswith(frozen)}
            assert all(torch.allclose(after[0][n], mine[n]) for n in after[0])
