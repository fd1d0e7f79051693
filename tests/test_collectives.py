"""Every collective gives what torch.distributed gives, for every size, dtype, op, root and world
size. The rows are in collective_cases.py; one launch makes all calls of a world size.
"""

import random
import time
from dataclasses import replace
from itertools import product

import pytest
from collective_cases import DTYPES, OPS, ROWS, Case, run_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib import collectives, run_ranks
from course_lib.launch.errors import CallMismatch, RankFailure

WORLD_SIZES = (1, 2, 3, 4, 5, 8)


def fitting(case, world_size):
    """The same case with every field that its collective does not use, or cannot, at its default.
    """
    uses, plain = ROWS[case.call].uses, Case(case.call, case.shape)
    fields = {name: getattr(plain, name) for name in ("op", "root", "segments", "ragged", "strided")
              if name not in uses}
    case = replace(case, root=case.root % world_size)
    if case.op == "mean" and case.dtype == "int64":
        fields["op"] = "max"
    return replace(case, **fields)


def shapes(world_size):
    one = [(n,) for n in (0, 1, world_size - 1, world_size, world_size + 1, 1000)]
    return [*one, (), (3, 4, 5), (world_size, 2), (0, 7)]


def distinct(cases, world_size):
    return list(dict.fromkeys(fitting(case, world_size) for case in cases))


def table(world_size):
    """Every collective with every shape and every root; dtypes, ops, segments and the layout of
    the inputs take turns beside them.
    """
    cases = []
    for row, call in enumerate(ROWS):
        cases += [Case(call, shape, DTYPES[(row + i) % 4], tuple(OPS)[i % 3], row + i, 1 + i % 3,
                       i % 2 == 0, i % 4 < 2, seed=i) for i, shape in enumerate(shapes(world_size))]
        cases += [Case(call, (5,), root=root, op=tuple(OPS)[root % 3], seed=root, segments=2)
                  for root in range(world_size) if "root" in ROWS[call].uses or root < 3]
    return distinct(cases, world_size)


def large_table(world_size):
    """Every shape with every dtype, every root with every op and layout, segments with sizes."""
    cases = [Case(call, shape, dtype, op=tuple(OPS)[i % 3], root=i, segments=1 + i % 3, seed=i)
             for call in ROWS for i, (shape, dtype) in enumerate(product(shapes(world_size),
                                                                         DTYPES))]
    for call in ROWS:
        cases += [Case(call, (5,), root=root, op=op, seed=root, ragged=ragged, strided=strided)
                  for root, op, ragged, strided in product(range(world_size), OPS, *[(0, 1)] * 2)]
        cases += [Case(call, (n,), segments=k, seed=n) for n in (0, 1, 2, 5, 11) for k in (1, 2, 3)]
    return distinct(cases, world_size)


def check(cases, world_size, **options):
    began = time.monotonic()
    done = run_ranks(run_cases, world_size, cases, timeout=200, **options).results
    print(f"{len(cases)} cases on {world_size} ranks: {time.monotonic() - began:.1f} s")
    assert done == [len(cases)] * world_size


@pytest.mark.parametrize("world_size", [
    pytest.param(W, marks=pytest.mark.soak if W > 4 else ()) for W in WORLD_SIZES])
def test_table(world_size):
    check(table(world_size), world_size, record=False)


@pytest.mark.soak
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_large_table(world_size):
    cases = large_table(world_size)
    if world_size > 5:  # where a case takes longest, half of them
        cases = random.Random(0).sample(cases, len(cases) // 2)
    check(cases, world_size, record=False)


def test_every_collective_has_a_row():
    assert set(ROWS) >= set(collectives.__all__)


cases_drawn = st.lists(
    st.builds(Case, call=st.sampled_from(sorted(ROWS)),
              shape=st.lists(st.integers(0, 9), max_size=3).map(tuple),
              dtype=st.sampled_from(DTYPES), op=st.sampled_from(sorted(OPS)),
              root=st.integers(0, 7), segments=st.integers(1, 4), ragged=st.booleans(),
              strided=st.booleans(), seed=st.integers(0, 999)),
    min_size=1, max_size=60)
drawn = given(st.sampled_from(WORLD_SIZES), cases_drawn)
patient = dict(deadline=None, suppress_health_check=list(HealthCheck))


@settings(max_examples=6, derandomize=True, **patient)
@drawn
def test_any_program_of_collectives(world_size, cases):
    check([fitting(case, world_size) for case in cases], world_size)


@pytest.mark.soak
@settings(max_examples=75, **patient)
@drawn
def test_many_programs_of_collectives(world_size, cases):
    check([fitting(case, world_size) for case in cases], world_size)


def test_in_subgroups_and_in_the_background():
    cases = table(2)[::20]

    def work(group):
        import torch
        import torch.distributed as dist

        from course_lib.collectives import all_reduce, gather

        part = group.split([[3, 1], [0, 2]])
        assert part.ranks == ((3, 1) if group.rank % 2 else (0, 2))
        stream = part.stream("comm")
        x = torch.full((7,), float(group.rank))
        background = stream.submit(all_reduce, torch.full((5,), 10.0 * group.rank), stream.group)
        assert all_reduce(x, part).tolist() == [4.0 if group.rank % 2 else 2.0] * 7
        found = gather(torch.tensor([group.rank]), part, root=0)
        assert found is None if part.rank else [t.item() for t in found] == list(part.ranks)
        assert background.wait().tolist() == [40.0 if group.rank % 2 else 20.0] * 5
        dist.barrier()
        return run_cases(group, [fitting(case, group.size) for case in cases])

    assert run_ranks(work, 4).results == [len(cases)] * 4


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda g, t: collectives.all_reduce(t.ones(4, 4).t(), g), ValueError, "must be contiguous"),
    (lambda g, t: collectives.scatter([t.ones(1)] * 3, g), ValueError, "must have one per rank"),
    (lambda g, t: collectives.all_to_all(t.ones(2), g), TypeError, "must be a list of tensors"),
    (lambda g, t: collectives.ring_all_reduce(t.ones(2), g, segments=0), ValueError, "segments=0"),
    (lambda g, t: collectives.ring_reduce_scatter([t.ones(2)] * 2, g, segments=0), ValueError,
     "segments=0"),
    (lambda g, t: collectives.reduce(t.ones(2), g, root=-1), ValueError, "root=-1: must be a rank"),
    (lambda g, t: collectives.barrier(3), TypeError, "group=3: must be a Group"),
])
def test_bad_arguments(call, error, words):
    import torch

    with pytest.raises(RankFailure, match=words) as caught:
        run_ranks(lambda group: call(group, torch), 2)
    assert caught.value.kind == error.__name__


def test_different_roots_are_a_mismatch():
    import torch

    with pytest.raises(CallMismatch, match="root=0"):
        run_ranks(lambda group: collectives.gather(torch.ones(2), group, root=group.rank), 2)
