"""The closed forms of schedules: exact in all of their stated domain, refused outside it."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from course_lib import schedule as course
from course_lib.schedule import bubble_seconds, peak_micro_batches, time_schedule
from course_lib.schedule.forms import NAMES

ZERO_BUBBLE = json.loads(
    (Path(__file__).parent / "reference" / "zero_bubble_tables.json").read_text())["rows"]
SECONDS = st.sampled_from([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0])  # exact in binary, and their sums
CHUNKED = ("interleaved_1f1b", "looped_bfs")


def replayed(name, p, m, F, I, W, latency=0.0, v=1, overlapped=None, barrier=False):  # noqa: E741
    schedule = getattr(course, name)(p, m, *([v] if name in CHUNKED else []))
    share = schedule.placement.ranks / schedule.placement.num_stages
    times = {"F": F * share, "I": I * share, "W": W * share}
    if overlapped is not None:
        times["F&B"] = overlapped * share
    return time_schedule(schedule, times, latency, barrier).bubble


@st.composite
def cases(draw, name):
    """A case that the builder takes, at any times."""
    p = draw(st.integers(1, 5))
    m = draw(st.integers(1, 3)) * p if name in CHUNKED else draw(st.integers(1, 3 * p + 1))
    if name == "dualpipe":
        p, m = 2 * draw(st.integers(1, 3)), 2 * m
    if name.startswith("dualpipe"):
        m += 2 * p
    v = draw(st.integers(1, 3)) if name in CHUNKED else 1
    F, I, W = draw(SECONDS), draw(SECONDS), draw(SECONDS)  # noqa: E741
    if name.startswith("dualpipe"):
        I = F  # noqa: E741
    return dict(p=p, m=m, F=F, I=I, W=W, v=v)


def in_the_stated_domain(name, p, m, F, I, W, **_):  # noqa: E741
    few = m < 2 * p - 1
    if name == "zb_h2":
        return not few or min(F, W) <= I
    if name == "zb_v":
        return I >= F and I >= W and (not few or F >= W)
    return not name.startswith("dualpipe") or F == I >= W


@pytest.mark.parametrize("name", NAMES)
def test_the_bubble_is_the_replayed_one_in_all_of_its_domain(name):
    @settings(max_examples=80, deadline=None)
    @given(cases(name))
    def check(case):
        if in_the_stated_domain(name, **case):
            assert bubble_seconds(name, **case) == pytest.approx(replayed(name, **case), abs=1e-9)
        else:
            with pytest.raises(ValueError, match=f"the closed form of {name} needs"):
                bubble_seconds(name, **case)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_the_bubble_with_transfers_is_the_replayed_one_or_refused(name):
    @settings(max_examples=60, deadline=None)
    @given(cases(name), st.sampled_from([1 / 64, 0.125, 0.25, 0.5, 1.0, 2.0]))
    def check(case, latency):
        try:
            expected = bubble_seconds(name, **case, latency=latency)
        except ValueError:
            assume(False)
        assert expected == pytest.approx(replayed(name, **case, latency=latency), abs=1e-9)

    if name in ("looped_bfs", "zb_v", "dualpipe", "dualpipe_v"):
        with pytest.raises(ValueError, match="no closed form of"):
            bubble_seconds(name, 2, 8, latency=0.1)
    else:
        check()


@pytest.mark.parametrize("name", ["dualpipe", "dualpipe_v"])
def test_cheaper_pairs_idle_as_the_form_says_in_the_makespan(name):
    @settings(max_examples=60, deadline=None)
    @given(cases(name), st.integers(0, 8))
    def check(case, eighths):
        assume(case["F"] >= case["W"])
        pair = 2 * case["F"] + case["W"] * eighths / 8
        assert bubble_seconds(name, **case, overlapped=pair) == pytest.approx(
            replayed(name, **case, overlapped=pair, barrier=True), abs=1e-9)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_peaks_are_those_of_the_builder_for_every_m(name):
    tried = 0
    for p in range(1, 7):
        for m in range(1, 4 * p + 2):
            for v in (1, 2, 3) if name in CHUNKED else (1,):
                try:
                    schedule = getattr(course, name)(p, m, *([v] if name in CHUNKED else []))
                except ValueError:
                    with pytest.raises(ValueError):
                        peak_micro_batches(name, p, m, 0, v)
                    continue
                for until_w in (1.0, 0.25):
                    tried += 1
                    assert [peak_micro_batches(name, p, m, r, v, 1.0, until_w)
                            for r in range(p)] == pytest.approx([
                                course.timing.peak_in_flight(schedule, r, 1.0, until_w)
                                for r in range(p)]), (p, m, v)
    assert tried >= 30


@pytest.mark.parametrize("row", ZERO_BUBBLE, ids=lambda row: f"{row['model']}-{row['m']}")
def test_the_rates_of_interleaved_1f1b_are_printed_with_p_transfers_fewer(row):
    p, m = row["p"], row["m"]
    case = dict(F=row["TF"], I=row["TB"], W=row["TW"], latency=row["Tcomm"], v=row["v"])
    work = m * (row["TF"] + row["TB"] + row["TW"])
    bubble = bubble_seconds("interleaved_1f1b", p, m, **case, printed=True)
    assert f"{bubble / (bubble + work):.4f}" == f"{row['1F1B_I']:.4f}"
    assert bubble + p * row["Tcomm"] == pytest.approx(
        bubble_seconds("interleaved_1f1b", p, m, **case))


def test_cases_that_were_once_wrong():
    assert bubble_seconds("zb_v", 4, 8, 1, 1.5, 1.5) == 0.75
    assert bubble_seconds("zb_h1", 2, 6, 1, 2, 1.5) == 2
    assert bubble_seconds("zb_h1", 4, 8, W=3) == 3
    assert bubble_seconds("zb_h2", 2, 6, W=1.5) == 0
    assert bubble_seconds("zb_h1", 8, 1) == 14
    assert bubble_seconds("zb_h2", 4, 4) == 3
    assert bubble_seconds("zb_v", 4, 1) == 6
    assert peak_micro_batches("one_f_one_b", 8, 1, 0) == 1


@pytest.mark.parametrize("call, message", [
    (lambda: bubble_seconds("dualpipe", 3, 8), "p=3, m=8: DualPipe needs even p"),
    (lambda: bubble_seconds("dualpipe_v", 3, 5), "m=5: DualPipeV needs m of at least 2p=6"),
    (lambda: bubble_seconds("gpipe", 0, 1), "p=0: must be an integer of at least 1"),
    (lambda: bubble_seconds("gpipe", True, 1), "p=True: must be an integer of at least 1"),
    (lambda: bubble_seconds("looped_bfs", 2, 2, v=0), "v=0: must be an integer of at least 1"),
    (lambda: bubble_seconds("looped_bfs", 2, 3), "m=3: must be a multiple of p=2"),
    (lambda: bubble_seconds("dualpipe", 2, 4, F=-1), "F=-1: must be above 0"),
    (lambda: bubble_seconds("gpipe", 2, 4, latency=-1), "latency=-1: must be at least 0"),
    (lambda: bubble_seconds("gpipe", 2, 4, latency=1.5), "latency=1.5: must be at most 1,"),
    (lambda: bubble_seconds("one_f_one_b", 2, 3, latency=0.1), "needs p dividing m"),
    (lambda: bubble_seconds("zb_v", 4, 8, F=2), "F=2, I=1.0, W=1.0: the closed form of zb_v needs"),
    (lambda: bubble_seconds("dualpipe", 4, 8, overlapped=4), "(overlapped=4)"),
    (lambda: peak_micro_batches("gpipe", 8, 8, 9), "rank=9: must be in 0..7"),
    (lambda: peak_micro_batches("gpipe", 8, 8, -1), "rank=-1: must be in 0..7"),
    (lambda: peak_micro_batches("zb_h1", 8, 8, 0, until_w=2.0), "until_i=1.0, until_w=2.0: must"),
    (lambda: peak_micro_batches("zb", 8, 8, 0), "name='zb': must be one of"),
])
def test_refused(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
