"""Why a schedule cannot run, in a sentence; where stages live; plain lists; bad arguments."""

import pytest

from course_lib import schedule as course
from course_lib.schedule import (
    IllegalSchedule,
    Op,
    Schedule,
    as_schedule,
    bidirectional,
    bubble_seconds,
    dualpipe,
    dualpipe_v,
    gpipe,
    interleaved,
    interleaved_1f1b,
    linear,
    needs,
    one_f_one_b,
    problem,
    time_schedule,
    v_shape,
    validate,
)

BUILT = [course.naive(3, 4), gpipe(4, 8), one_f_one_b(4, 8), course.zb_h1(3, 5),
         course.zb_h2(4, 8), interleaved_1f1b(4, 8, 2), course.interleaved_zb(2, 4, 3),
         course.looped_bfs(2, 4, 2), course.zb_v(4, 8), dualpipe(4, 8),
         dualpipe_v(3, 6)]


def parse(text, **more):
    """A schedule from text, one line a rank: "0F0 0F1 / 1F0 1F1"."""
    ops = [[Op(int(w[0]), w[1], int(w[2:])) for w in line.split()] for line in text.split("/")]
    return Schedule(ops, **more) if more else ops


GOOD = "0F0 0F1 0B0 0B1 / 1F0 1B0 1F1 1B1"


def test_ops_print_as_in_pytorch():
    assert str(Op(2, "F", 0)) == "2F0" and repr([Op(12, "W", 34)]) == "[12W34]"


def test_needs():
    assert needs(Op(0, "F", 3), 4) == []
    assert needs(Op(2, "F", 3), 4) == [Op(1, "F", 3)]
    assert needs(Op(2, "B", 3), 4) == [Op(3, "B", 3)]
    assert needs(Op(3, "I", 3), 4) == [Op(3, "F", 3)]
    assert needs(Op(0, "W", 3), 4) == [Op(0, "I", 3)]


def test_placements():
    assert [linear(3).rank(s) for s in range(3)] == [0, 1, 2]
    assert [interleaved(2, 3).rank(s) for s in range(6)] == [0, 1, 0, 1, 0, 1]
    assert interleaved(2, 3).stages(1) == [1, 3, 5]
    assert [v_shape(3).rank(s) for s in range(6)] == [0, 1, 2, 2, 1, 0]
    assert v_shape(3).stages(0) == [0, 5]
    both = bidirectional(4, 8)
    assert [[both.rank(s, mb) for s in range(4)] for mb in (3, 4)] == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert both.stages(1) == both.stages(2) == [1, 2]


@pytest.mark.parametrize("built", BUILT, ids=lambda s: s.placement.name)
def test_builders_are_legal_and_plain_lists_find_their_placement(built):
    validate(built, num_microbatches=built.num_microbatches)
    plain = [[tuple(op) for op in ops] for ops in built]
    assert as_schedule(plain).placement == built.placement
    assert problem(plain) == ""


@pytest.mark.parametrize("text, sentence", [
    ("0F0 1F0 0B0 / 1B0", "rank 0 lists 1F0, but stage 1 of micro-batch 0 is on rank 1 "
                          "(linear placement)"),
    ("0F0 0X0 / 1F0 1B0", "rank 0 lists 0X0, but 'X' is none of F, B, I, W"),
    (GOOD.replace("1F1", "1F0"), "rank 1 runs 1F0 twice"),
    (GOOD.replace("0F1 ", ""), "0F1 is missing: rank 0 never runs the forward of micro-batch 1 on "
                               "stage 0"),
    (GOOD.replace(" 0B1", ""), "0B1 is missing: rank 0 never runs the backward of micro-batch 1 on "
                               "stage 0"),
    ("0F0 0I0 0W0 / 1F0 1I0", "1W0 is missing: rank 1 never runs the weight gradient of "
                              "micro-batch 0 on stage 1"),
    ("0F0 0W0 / 1F0 1I0 1W0", "0I0 is missing: rank 0 never runs the input gradient of micro-batch "
                              "0 on stage 0"),
    ("0F0 0I0 0W0 / 1F0", "1I0 is missing: rank 1 never runs the input gradient of micro-batch 0 "
                          "on stage 1"),
    ("0F0 0B0 0W0 / 1F0 1B0", "rank 0 runs both 0B0 and 0W0: a B is an I and a W already"),
    ("0F0 0I0 0B0 / 1F0 1B0", "rank 0 runs both 0I0 and 0B0: a B is an I and a W already"),
    ("0B0 0F0 / 1F0 1B0", "rank 0 runs 0B0 before 0F0, which it needs"),
    ("0F0 0W0 0I0 / 1F0 1I0 1W0", "rank 0 runs 0W0 before 0I0, which it needs"),
    ("0F0 0B0 / 1B0 1F0", "rank 1 runs 1B0 before 1F0, which it needs"),
    ("0F0 0B0 0F1 0B1 / 1F0 1F1 1B0 1B1", "deadlock: 0 -> 1 -> 0; rank 0 waits in 0B0 for 1B0; "
                                          "rank 1 waits in 1F1 for 0F1"),
    ("0F0 0B0 0F1 0B1 / 1F0 1F1 1B0 1B1 / 2F0 2B0 2F1 2B1",
     "deadlock: 0 -> 1 -> 0; rank 0 waits in 0B0 for 1B0; rank 1 waits in 1F1 for 0F1"),
])
def test_illegal_schedules_are_told_why(text, sentence):
    assert problem(parse(text)) == sentence
    with pytest.raises(IllegalSchedule) as error:
        time_schedule(parse(text))
    assert str(error.value) == sentence


def test_a_deadlock_comes_with_its_picture():
    with pytest.raises(IllegalSchedule) as error:
        validate(parse("0F0 0B0 0F1 0B1 / 1F0 1F1 1B0 1B1"))
    assert error.value.graph == {
        "world_size": 2, "edges": [(0, 1, "0B0 for 1B0"), (1, 0, "1F1 for 0F1")],
        "notes": {0: "waits in 0B0 for 1B0", 1: "waits in 1F1 for 0F1"}}


def test_a_pair_that_overlaps_itself_is_a_deadlock():
    ops = parse("0F0 0B0")
    assert problem(ops) == ""
    paired = Schedule(ops, linear(1), {ops[0][0]: ops[0][1]})
    assert problem(paired) == "deadlock: 0 -> 0; rank 0 waits in 0B0 for 0F0"


def test_numbers_that_do_not_exist():
    assert problem(parse(GOOD), num_microbatches=1) == (
        "rank 0 lists 0F1, but there is no micro-batch 1: there are 1, numbered from 0")
    assert problem(parse(GOOD), num_microbatches=3).startswith("0F2 is missing")
    assert problem(parse("0F0 0B0 / 2F0 2B0"), placement=linear(2)) == (
        "rank 1 lists 2F0, but there is no stage 2: there are 2, numbered from 0")
    assert problem(parse(GOOD), placement=linear(3)) == (
        "the schedule has 2 lists, but the linear placement has 3 ranks")
    assert problem([]) == "schedule=[]: must have one list of ops per rank, at least one"
    assert problem([["0F0"]]).startswith("schedule[0] contains '0F0': must be an Op(stage, kind")
    assert problem([[Op(0, "F", -1)]]).startswith("schedule[0] contains 0F-1: must be")


def test_memory_cap():
    fill, alternate = gpipe(4, 8), one_f_one_b(4, 8)
    assert problem(alternate, memory_cap=4) == ""
    assert problem(fill, memory_cap=4) == (
        "rank 0 holds the activations of 5 micro-batches from 0F4 on, but the cap is 4")
    chunks = interleaved_1f1b(4, 8, 3)
    assert problem(chunks, memory_cap=5) == ""
    assert "holds the activations of 5 micro-batches" in problem(chunks, memory_cap=4.9)
    late = course.zb_h1(4, 8)
    assert problem(late, memory_cap=4) == ""
    assert "rank 0 holds the activations of 4" in problem(late, memory_cap=3.5, until_w=0.5)
    assert problem(late, memory_cap=2, until_i=0.5, until_w=0.25) == ""
    with pytest.raises(ValueError, match="until_i=1.0, until_w=2: must be"):
        validate(late, memory_cap=4, until_w=2)


@pytest.mark.parametrize("call, message", [
    (lambda: gpipe(0, 4), "p=0: must be an integer of at least 1"),
    (lambda: gpipe(2, 0), "m=0: must be"),
    (lambda: one_f_one_b(2, 1.5), "m=1.5: must be an integer"),
    (lambda: interleaved_1f1b(2, 4, 0), "v=0: must be"),
    (lambda: interleaved_1f1b(2, 3, 2), "m=3: must be a multiple of p=2"),
    (lambda: dualpipe(3, 8), "p=3, m=8: DualPipe needs even p"),
    (lambda: dualpipe(4, 6), "m at least 2p"),
    (lambda: dualpipe_v(4, 6), "m=6: DualPipeV needs m of at least 2p=8"),
    (lambda: time_schedule(gpipe(2, 2), latency=-1), "latency=-1: must be at least 0"),
    (lambda: time_schedule(gpipe(2, 2), nbytes=1e9), "nbytes=1000000000.0: without a machine"),
    (lambda: time_schedule(gpipe(2, 2), nbytes=-5), "nbytes=-5: must be at least 0"),
    (lambda: time_schedule(gpipe(2, 2)).span(9), "rank=9: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2)).busy(2), "rank=2: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2)).in_flight(-1), "rank=-1: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2)).in_flight_curve(9), "rank=9: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2)).idle(9), "rank=9: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2)).memory(9), "rank=9: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2)).of(9), "rank=9: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2)).exposed(9), "rank=9: must be in 0..1"),
    (lambda: time_schedule(gpipe(2, 2), {"F": 1}), "must say how long B takes"),
    (lambda: time_schedule(gpipe(2, 2), {"F": 0, "B": 1}), "times['F']=0: must be above 0"),
    (lambda: time_schedule(gpipe(2, 2), {"F": 1, "X": 1}), "times has 'X'"),
    (lambda: time_schedule(gpipe(2, 2), lambda op: -1), "times(0F0)=-1: must be above 0"),
    (lambda: time_schedule(gpipe(2, 2)).in_flight(0, 1, 2), "until_i=1, until_w=2: must be"),
    (lambda: bubble_seconds("gpip", 2, 2), "name='gpip': must be one of naive"),
    (lambda: bubble_seconds("zb_v", 2, 4, latency=1.0), "latency=1.0: no closed form of zb_v"),
])
def test_refused(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)


def test_the_package_exports_what_it_lists():
    assert all(hasattr(course, name) for name in course.__all__)
