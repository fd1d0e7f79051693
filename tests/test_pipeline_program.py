"""A pipeline records the program that its schedule is lowered to, and holds what is in flight."""

import pytest
from pipelines import EIGHT, NAMES, TIED, cases, net_of, program_rows, tokens_of

from course_lib import dry_run, pipeline, run_ranks
from course_lib.pipeline import run_pipeline, split_stages
from course_lib.schedule import lower, one_f_one_b, time_schedule, zb_h1


def marked(group, plans, config=EIGHT):
    """Run each schedule between two marks."""
    for (name, m), plan in plans.items():
        stages = split_stages(net_of(config), plan.placement, group.rank)
        tokens = tokens_of(2 * m)[0]
        group.mark(f"{name} {m}")
        run_pipeline(stages, plan, tokens[:, :-1], tokens[:, 1:], group)
        group.mark("end")


# What a rank does after its program where another one holds copies of its stages
COPIES_SUMMED = ["compute", "irecv", "isend", "wait", "compute"]
SOME = ("one_f_one_b", "zb_h2", "interleaved_1f1b", "zb_v", "dualpipe")


@pytest.mark.parametrize(("p", "m", "names"), [
    (2, 4, NAMES), pytest.param(4, 8, SOME, marks=pytest.mark.soak),
    pytest.param(3, 9, NAMES, marks=pytest.mark.soak),
    pytest.param(4, 16, NAMES, marks=pytest.mark.soak)])
def test_the_recorded_program_is_the_lowered_one(p, m, names):
    plans = cases(p, [m], names)
    assert len(plans) == len(names) - (p == 3)  # DualPipe takes an even number of ranks
    trace = run_ranks(marked, p, plans).trace
    for (name, _), plan in plans.items():
        ideal = lower(plan, lambda ops: 1.0, 2 * 6 * 8 * 8, "float64")
        for rank in range(p):
            got, want = (program_rows(trace.program(rank), f"{name} {m}"),
                         program_rows(ideal.program(rank)))
            after = [row[0] for row in got[len(want):]]
            assert got[:len(want)] == want, f"{name} rank {rank}"
            assert after == (COPIES_SUMMED if name == "dualpipe" else []), f"{name} rank {rank}"


def test_a_dry_run_records_the_same_program():
    plans = {("zb_h1", 6): zb_h1(3, 6)}
    real, dry = run_ranks(marked, 3, plans).trace, dry_run(marked, 3, plans)
    for rank in range(3):
        assert (program_rows(dry.program(rank), "zb_h1 6")
                == program_rows(real.program(rank), "zb_h1 6"))


def test_a_tied_weight_is_exchanged_after_the_program():
    plan = one_f_one_b(3, 3)
    trace = run_ranks(marked, 3, {("tied", 3): plan}, TIED).trace
    for rank, extra in enumerate([11 * 8 * 8, 0, 11 * 8 * 8]):
        rows = program_rows(trace.program(rank), "tied 3")
        ideal = program_rows(lower(plan, lambda ops: 1.0, 2 * 6 * 8 * 8, "float64").program(rank))
        assert rows[:len(ideal)] == ideal
        assert sum(row[2] for row in rows[len(ideal):] if row[0] == "isend") == extra


def with_marks(group, plans):
    """Like `marked`, with a mark after every op."""
    compute = pipeline._Run.compute

    def marking(run, op):
        compute(run, op)
        group.mark(f"{running} {op}")

    running = ""
    pipeline._Run.compute = marking
    for name, m in plans:
        running = name
        marked(group, {("start", m): plans[name, m]})


@pytest.mark.soak
@pytest.mark.parametrize("p", [2, 4])
def test_bytes_held_are_those_of_the_activations_in_flight(p):
    m = 2 * p + 1
    plans = cases(p, [m], ("gpipe", "one_f_one_b", "zb_h1", "zb_h2", "zb_v"))
    trace = run_ranks(with_marks, p, plans).trace
    for (name, _), plan in plans.items():
        for rank in range(p):
            check_bytes(trace, rank, name, m, plan)


def check_bytes(trace, rank, name, m, plan):
    held = [trace.held_at(rank, f"{name} {op}")["activation"] for op in plan[rank]]
    base = 2 * m * 7 * 8 if 0 in plan.placement.stages(rank) else 0  # the tokens, saved as indices
    whole, rest, expected, until_i = 0, 0, [], {}
    blocks = 8 // plan.placement.num_stages
    for op, now in zip(plan[rank], held):
        last = op.stage == plan.placement.num_stages - 1
        # Inputs and output gradients of a block's linear layers: 16 D; 32 sbh in two bytes each
        until_w = 2 * 6 * 8 * (16 * 8 * blocks + (8 + 11 if last else 0))
        if op.kind == "F":
            before = base if not expected else expected[-1]
            whole += until_i.setdefault(op.stage, now - before)
        elif op.kind in "BI":
            whole -= until_i[op.stage]
        rest += until_w * {"I": 1, "W": -1}.get(op.kind, 0)
        expected.append(base + whole + rest)
    assert held == expected, f"{name} rank {rank}"
    if plan.placement.name == "linear":
        stage = plan.placement.stages(rank)[0]
        peak = time_schedule(plan).in_flight(rank, until_i[stage], until_w)
        assert max(held) - base == peak, f"{name} rank {rank}"
