"""Schedules against published orders, tables and closed forms."""

import json
import re
import time
from pathlib import Path

import pytest

from course_lib.schedule import (
    Op,
    Schedule,
    bubble_seconds,
    dualpipe,
    dualpipe_v,
    gpipe,
    interleaved_1f1b,
    interleaved_zb,
    looped_bfs,
    naive,
    one_f_one_b,
    peak_micro_batches,
    time_schedule,
    validate,
    zb_h1,
    zb_h2,
    zb_v,
)

REFERENCE = Path(__file__).parent / "reference"
ZERO_BUBBLE = json.loads((REFERENCE / "zero_bubble_tables.json").read_text())["rows"]
UNIT = json.loads((REFERENCE / "schedules_unit_times.json").read_text())
ORDERS = json.loads((REFERENCE / "schedule_orders_p4_m8.json").read_text())["orders"]

TABLE_NAMES = {
    "GPipe": gpipe, "1F1B (PipeDream-Flush)": one_f_one_b, "1F1B": one_f_one_b,
    "Interleaved 1F1B v=2": interleaved_1f1b, "ZB-H1": zb_h1, "ZB-H2": zb_h2,
    "ZB-V (2 chunks/device)": zb_v, "ZB-V": zb_v, "DualPipe (2x params)": dualpipe,
    "DualPipeV (2 chunks/device)": dualpipe_v,
    "Interleaved 1F1B v=4": lambda p, m: interleaved_1f1b(p, m, 4),
    "InterleavedZeroBubble v=2 (torch)": interleaved_zb, "LoopedBFS v=2 (torch)": looped_bfs,
    "naive (m=1, p=4)": lambda p, m: naive(p),
}
ORDER_NAMES = {
    "gpipe": gpipe, "1f1b": one_f_one_b, "interleaved_v2": interleaved_1f1b, "zb_h1": zb_h1,
    "zb_h2": zb_h2, "zb_v": zb_v, "dualpipe": dualpipe, "dualpipe_v": dualpipe_v,
    "interleaved_zero_bubble_v2": interleaved_zb,
}
LETTERS = {"F": "F", "BW": "B", "B": "I", "W": "W"}  # the papers' to ours


def per_rank(schedule, F=1.0, I=1.0, W=1.0):  # noqa: E741
    """Times of one op, given those of a whole rank; two directions hold the model twice."""
    share = schedule.placement.ranks / schedule.placement.num_stages
    return {"F": F * share, "I": I * share, "W": W * share}


def timed(schedule, latency=0.0, barrier=False, **times):
    return time_schedule(schedule, per_rank(schedule, **times), latency, barrier)


def translated(text, m):
    """A rank's order in the reference's letters: (ops, overlapped pairs)."""
    ops, pairs = [], {}
    for word in text.split():
        parts = re.fullmatch(r"FB\((.*)\|(.*)\)", word)
        for part in parts.groups() if parts else (word,):
            kind, stage, mb, way = re.fullmatch(r"([A-Z]+)(\d+)\.(\d+)(d1)?(?:d0)?", part).groups()
            kind = "B" if parts and kind == "B" else LETTERS[kind]  # an overlapped B is a full one
            ops.append(Op(int(stage), kind, int(mb) + (m // 2 if way else 0)))
        if parts:
            pairs[ops[-2]] = ops[-1]
    return ops, pairs


def test_every_order_of_the_reference_is_tested():
    assert set(ORDERS) == set(ORDER_NAMES)


@pytest.mark.parametrize("name", ORDERS)
def test_rank_orders_are_the_published_ones(name):
    built = ORDER_NAMES[name](4, 8)
    expected = [translated(text, 8) for text in ORDERS[name]]
    assert [*built] == [ops for ops, _ in expected]
    assert built.overlapped == {f: b for _, pairs in expected for f, b in pairs.items()}


def row_id(row):
    return "-".join(str(row[key]) for key in ("schedule", "p", "m") if key in row)


@pytest.mark.parametrize("row", UNIT["rows"] + UNIT["extra"], ids=row_id)
def test_unit_time_table(row):
    p, m = row.get("p", 4), row.get("m", 8)
    timeline = timed(TABLE_NAMES[row["schedule"]](p, m))
    assert timeline.makespan == row["makespan"]
    assert max(timeline.span(r) for r in range(p)) == row["max_device_span"]
    assert timeline.bubble == row["bubble"]
    assert timeline.bubble_fraction == row["bubble"] / row["max_device_span"]
    peaks = [timeline.in_flight(r) for r in range(p)]
    if "peak_rank0" in row:
        assert peaks[0] == row["peak_rank0"]
    else:
        assert peaks == row["peak_activation_per_rank_MB_eq_MW"]


@pytest.mark.parametrize("row", UNIT["period_p4_m8"], ids=row_id)
def test_iterations_without_a_barrier_follow_each_other(row):
    once = TABLE_NAMES[row["schedule"]](4, 8)

    def makespan(iterations):
        chained = [[op._replace(mb=op.mb + 8 * i) for i in range(iterations) for op in ops]
                   for ops in once]
        return timed(Schedule(chained, once.placement)).makespan

    assert makespan(4) - makespan(3) == row["period"]


BUILDERS = [naive, gpipe, one_f_one_b, zb_h1, zb_h2, zb_v, dualpipe, dualpipe_v]


def grid_of(name, p, every_m=True):
    """The m = p..4p for which the builder has a closed form; all, or those next to multiples of p.
    """
    for m in range(p, 4 * p + 1):
        if not every_m and m % p not in (0, p - 1):
            continue
        if name in ("zb_h2", "zb_v") and m < 2 * p - 1:
            continue
        if name.startswith("dualpipe") and m < 2 * p or name == "dualpipe" and (p % 2 or m % 2):
            continue
        if name.startswith(("interleaved", "looped")) and m % p:
            continue
        yield m


SMALL = [(p, p < 6) for p in range(2, 9)]
WHOLE = [pytest.param(p, True, marks=pytest.mark.soak) for p in range(6, 9)]


@pytest.mark.parametrize("p, every_m", SMALL + WHOLE)
@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_closed_forms(build, p, every_m):
    for m in grid_of(build.__name__, p, every_m):
        timeline = timed(build(p, m))
        bubble = bubble_seconds(build.__name__, p, m)
        assert timeline.bubble == pytest.approx(bubble, abs=1e-9), m
        assert timeline.bubble_ratio == pytest.approx(bubble / (3 * m)), m
        assert timeline.bubble_fraction == pytest.approx(bubble / (3 * m + bubble)), m
        if build in (zb_v, dualpipe, dualpipe_v) and m < 2 * p:
            continue  # the memory has its closed form from 2p on
        assert [timeline.in_flight(r) for r in range(p)] == [
            peak_micro_batches(build.__name__, p, m, r) for r in range(p)], m


@pytest.mark.parametrize("p", [2, 3, 4, 5, *(
    pytest.param(p, marks=pytest.mark.soak) for p in range(6, 9))])
@pytest.mark.parametrize("build, v", [(interleaved_1f1b, 2), (interleaved_1f1b, 3),
                                      (interleaved_1f1b, 4), (looped_bfs, 2)])
def test_closed_forms_with_chunks(build, v, p):
    for m in grid_of(build.__name__, p):
        timeline = timed(build(p, m, v))
        bubble = bubble_seconds(build.__name__, p, m, v=v)
        assert timeline.bubble == pytest.approx(bubble, abs=1e-9), m
        assert [timeline.in_flight(r) for r in range(p)] == pytest.approx([
            peak_micro_batches(build.__name__, p, m, r, v) for r in range(p)])
        if build is interleaved_1f1b and m > p:
            assert timeline.in_flight(0) == pytest.approx(p * (1 + (p - 1) / (p * v)))


@pytest.mark.parametrize("p, m", [(1, 1), (1, 3), (2, 2), (3, 6), (4, 4), (4, 12)])
def test_closed_forms_at_unequal_times_with_transfers(p, m):
    times = dict(F=3.0, I=4.0, W=2.0)
    for latency in (0.0, 0.125):
        for build in (naive, gpipe, one_f_one_b, zb_h1, zb_h2, zb_v):
            name = build.__name__
            if name in ("zb_h2", "zb_v") and m < 2 * p - 1 or build is zb_v and latency:
                continue
            expected = bubble_seconds(name, p, m, **times, latency=latency)
            assert timed(build(p, m), latency, **times).bubble == pytest.approx(expected), name
        expected = bubble_seconds("interleaved_1f1b", p, m, **times, latency=latency, v=2)
        bubble = timed(interleaved_1f1b(p, m, 2), latency, **times).bubble
        assert bubble == pytest.approx(expected)


@pytest.mark.parametrize("row", ZERO_BUBBLE, ids=lambda row: f"{row['model']}-{row['m']}")
def test_zero_bubble_paper_table_5(row):
    p, m, latency = row["p"], row["m"], row["Tcomm"]
    times = dict(F=row["TF"], I=row["TB"], W=row["TW"])
    for name, build in (("1F1B", one_f_one_b), ("ZB_H1", zb_h1), ("ZB_H2", zb_h2)):
        timeline = timed(build(p, m), latency, **times)
        assert f"{timeline.bubble_fraction:.4f}" == f"{row[name]:.4f}"
        assert timeline.bubble == pytest.approx(
            bubble_seconds(build.__name__, p, m, **times, latency=latency))
    # 1F1B-I as printed waits for p transfers fewer than any order of these ops needs.
    bubble = bubble_seconds("interleaved_1f1b", p, m, **times, latency=latency, v=row["v"])
    printed = bubble - p * latency
    assert f"{printed / (printed + m * sum(times.values())):.4f}" == f"{row['1F1B_I']:.4f}"


def test_interleaved_at_the_papers_times_is_its_closed_form():
    row = ZERO_BUBBLE[0]
    p, m, v, latency = row["p"], row["m"], row["v"], row["Tcomm"]
    times = dict(F=row["TF"], I=row["TB"], W=row["TW"])
    expected = bubble_seconds("interleaved_1f1b", p, m, **times, latency=latency, v=v)
    assert timed(interleaved_1f1b(p, m, v), latency, **times).bubble == pytest.approx(expected)


@pytest.mark.parametrize("p, m", [(2, 4), (4, 8), (4, 16), (8, 16)])
def test_1f1b_saves_memory_not_time(p, m):
    fill, alternate = timed(gpipe(p, m)), timed(one_f_one_b(p, m))
    assert fill.makespan == alternate.makespan == 3 * (m + p - 1)
    assert [fill.in_flight(r) for r in range(p)] == [m] * p
    assert [alternate.in_flight(r) for r in range(p)] == [p - r for r in range(p)]
    late = 0.0625
    exposed = [timed(build(p, m), late).makespan - 3 * (m + p - 1)
               for build in (gpipe, one_f_one_b)]
    assert exposed == [2 * (p - 1) * late, (2 * (p - 1) * (m / p + 1) - 2) * late]


@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_naive_idles_the_same_share_for_every_m(m):
    timeline = timed(naive(4, m))
    assert timeline.bubble_fraction == 3 / 4
    assert timeline.bubble_ratio == 3
    assert timeline.makespan == 4 * 3 * m
    work = sorted(span for op, span in timeline.ops.items() if op.kind == "F")
    assert work == [(float(t), float(t + 1)) for t in range(4 * m)]  # one rank at a time


def test_a_barrier_takes_the_gain_of_zb_h2_at_equal_times():
    one, two = timed(zb_h1(4, 8)), timed(zb_h2(4, 8))
    assert (one.bubble, two.bubble) == (3, 0)
    one, two = timed(zb_h1(4, 8), barrier=True), timed(zb_h2(4, 8), barrier=True)
    assert one.bubble == two.bubble == 3
    assert one.bubble_fraction == two.bubble_fraction == 3 / 27


@pytest.mark.parametrize("row", ZERO_BUBBLE, ids=lambda row: f"{row['model']}-{row['m']}")
def test_a_barrier_at_the_papers_times(row):
    """ZB-H2 then idles at least (p-1) T_F: it keeps all of its gain at 1.5B, half at 6.2B."""
    p, m, latency = row["p"], row["m"], row["Tcomm"]
    times = dict(F=row["TF"], I=row["TB"], W=row["TW"])
    free, bound = ([timed(build(p, m), latency, barrier, **times).bubble
                    for build in (zb_h1, zb_h2)] for barrier in (False, True))
    span = row["TF"] + row["TB"] - 2 * row["TW"] + 2 * latency
    assert bound[1] == pytest.approx((p - 1) * max(row["TF"] + latency, span))
    assert bound[0] == pytest.approx(free[0])
    kept = (bound[0] - bound[1]) / (free[0] - free[1])
    assert kept == pytest.approx(1.0) if row["model"] == "1.5B" else 0.4 < kept < 0.6


def test_activations_held_until_i_and_until_w_have_their_own_sizes():
    for build, peaks in ((zb_h1, [4, 3.5, 3, 2.5]), (zb_h2, [7, 6, 5, 4])):
        timeline = timed(build(4, 8))
        assert [timeline.in_flight(r, 1.0, 0.5) for r in range(4)] == peaks
        assert peaks == [peak_micro_batches(build.__name__, 4, 8, r, until_w=0.5)
                         for r in range(4)]
    curve = timed(zb_h1(2, 2)).in_flight_curve(0, 1.0, 0.25)
    assert curve == [(0, 1), (1, 2), (4, 1.25), (5, 1), (6, 0.25), (7, 0)]


@pytest.mark.parametrize("p, m, pair, makespan, bubble", [
    (4, 8, 2.5, 24, 1.5), (4, 8, 2, 22, 1), (8, 20, 3, 66, 6), (8, 20, 2.5, 59, 4.5),
    (8, 20, 2, 52, 3)])
def test_dualpipe_with_cheaper_overlap(p, m, pair, makespan, bubble):
    timeline = time_schedule(dualpipe(p, m), {"F": 1, "I": 1, "W": 1, "F&B": pair}, barrier=True)
    assert (timeline.makespan, timeline.bubble) == (makespan, bubble)
    assert bubble_seconds("dualpipe", p, m, overlapped=pair) == bubble


def test_few_micro_batches_are_allowed():
    for build in (naive, gpipe, one_f_one_b, zb_h1, zb_h2, zb_v):
        for p in range(1, 5):
            for m in range(1, p + 1):
                validate(build(p, m), num_microbatches=m)
    for p in range(1, 6):
        for m in range(1, p + 1):  # ZB paper, appendix H
            makespan = time_schedule(zb_h1(p, m), {"F": 3, "I": 4, "W": 2}).makespan
            assert makespan == (m + p - 1) * 7 + 2


@pytest.mark.soak
def test_large_schedules_are_quick():
    """320,000 events: 3 seconds are wanted, and the limit is five times that."""
    start = time.process_time()
    timeline = time_schedule(one_f_one_b(64, 512))
    assert timeline.bubble == 63 * 3
    assert time.process_time() - start < 15
