"""The pipeline explorer says and draws what the timed schedule is; controls change it in place."""

import re
import time

import pytest

from course_lib.machine import dgx_h100, unit
from course_lib.schedule import (
    Op,
    dualpipe,
    gpipe,
    interleaved_1f1b,
    lower,
    one_f_one_b,
    time_schedule,
    zb_h1,
    zb_h2,
)
from course_lib.viz import bubble_chart, explore_pipeline, show_pipeline
from course_lib.viz.pipeline import OWN, PLACES
from course_lib.viz.pipeline_rows import PipelinePanel
from course_lib.viz.pipeline_text import KNOWN, schedule_name


def bars(view, panel=0, kinds="FBIW"):
    return [bar for bar in view.data["panels"][panel]["bars"] if bar[3] in kinds]


def sentence(view, op, rank):
    """What is said of an op, of its stage's rank."""
    return next(text for _, text, *_ in view.data["steps"] if f"rank {rank} runs {op}," in text)


def change(explorer, **values):
    for name, value in values.items():
        explorer.controls.all[name].value = value


@pytest.mark.parametrize("name", KNOWN)
def test_every_schedule_is_drawn_as_it_is_timed(name):
    view = explore_pipeline(name).view
    schedule = KNOWN[name].build(4, 8, 2)
    share = 4 / schedule.placement.num_stages * 1e-3
    timeline = time_schedule(schedule, {"F": share, "I": share, "W": share})
    assert view.data["clock"]["end"] == pytest.approx(timeline.makespan)
    drawn = {(row, round(start, 9), round(end, 9), kind) for row, start, end, kind, *_ in
             bars(view)}
    assert drawn == {(rank, round(timeline.ops[op][0], 9), round(timeline.ops[op][1], 9), op.kind)
                     for rank, ops in enumerate(schedule) for op in ops}
    assert view.data["summary"].endswith(f"bubble fraction {timeline.bubble_fraction:.4f}")
    assert not view.error and 'fill="url(#' in view.still()


@pytest.mark.parametrize("text, name", [
    ("1f1b", "1F1B"), ("one_f_one_b", "1F1B"), ("GPIPE", "GPipe"), ("zb_h1", "ZB-H1"),
    ("interleaved_1f1b", "interleaved 1F1B"), ("dualpipe-v", "DualPipeV"), ("zbv", "ZB-V")])
def test_schedules_are_known_by_several_names(text, name):
    assert schedule_name(text) == name


def test_hatched_idle_time_of_the_worst_rank_is_the_bubble():
    for name, bubble in (("1f1b", 9e-3), ("zb-h1", 3e-3), ("zb-h2", 0.0), ("dualpipe", 2e-3)):
        idle = bars(explore_pipeline(name).view, kinds=("bubble",))
        of_rank = [sum(end - start for row, start, end, *_ in idle if row == rank)
                   for rank in range(4)]
        assert max(of_rank) == pytest.approx(bubble)
    view = explore_pipeline("zb-h2", barrier=True).view
    assert not bars(view, kinds=("outside",))
    assert sum(b[2] - b[1] for b in bars(view, kinds=("bubble",))) == pytest.approx(4 * 3e-3)


def test_an_op_says_what_it_waits_for_and_shows_it():
    explorer = explore_pipeline("1f1b", latency=0.5)
    text = sentence(explorer.view, "0B0", 0)
    assert "the backward of micro-batch 0 on stage 0, for 2 ms" in text
    assert "it has waited 9 ms for 1B0 of rank 1, 0.5 ms of it for the transfer" in text
    step = next(s for s in explorer.view.data["steps"] if s[1] == text)
    panel = explorer.view.data["panels"][0]
    assert [panel["bars"][i][4] for i in step[3]] == ["B0", "B0"]
    assert [panel["messages"][i][:2] for i in step[4]] == [[1, 0]]
    assert "needs no input" in sentence(explorer.view, "0F0", 0)
    assert "only 3F0 of its own rank" in sentence(explorer.view, "3B0", 3)
    expected = "; it follows 1B0 at once, and its input from 0F3 of rank 0 came 2 ms before"
    assert expected in sentence(
        explore_pipeline("1f1b").view, "1F3", 1)


def test_both_bubbles_are_said_with_formula_and_value():
    text = repr(explore_pipeline("1f1b"))
    assert "idle / useful time = (p-1)/m = 9 ms / 24 ms = 0.3750" in text
    assert "idle / total time = (p-1)/(m+p-1) = 9 ms / 33 ms = 0.2727" in text
    assert "in flight, at most: 4, 3, 2, 1" in text
    assert "bubble = (p-1)(F+I+W) = 9 ms, as replayed" in text
    late = repr(explore_pipeline("1f1b", latency=0.2))
    assert "idle / useful time = 12.2 ms / 24 ms" in late and "(p-1)(F+I+W) + transfers" in late
    assert "bubble = max(0, (p-1)(F+I) - (min(m,2p-1)-1) min(F,W)) = 2 ms, as replayed" in repr(
        explore_pipeline("zb-h2", m=5))
    long_w = explore_pipeline("zb-h1")
    change(long_w, W=3.0)
    assert "bubble = (p-1)(F+I) - (min(m,p)-1) min(F,W) = 3 ms, as" in repr(long_w)
    assert "no closed form of zb_v with transfer" in repr(explore_pipeline("zb-v", latency=0.1))
    cheap = explore_pipeline("dualpipev")
    change(cheap, pair=2.5)
    assert "it counts up to the end of the last rank" in repr(cheap)
    assert "up to the end of the last rank" in repr(explore_pipeline("zb-h2", barrier=True))


def test_strips_are_the_activations_in_flight_on_one_scale():
    explorer = explore_pipeline("zb-h2", compare="1f1b", memory_cap=5.0, kept_for_w=0.5)
    for panel, build in zip(explorer.view.data["panels"], (zb_h2, one_f_one_b)):
        timeline = time_schedule(build(4, 8))
        assert len(panel["strips"]) == 4
        for rank, strip in enumerate(panel["strips"]):
            held = [sum(kinds.values()) for _, kinds in strip["series"]]
            assert max(held) == timeline.in_flight(rank, until_w=0.5) and held[-1] == 0
            assert strip["top"] == 7 and strip["line"] == 5
    assert explorer.view.error == ("ZB-H2: rank 0 holds the activations of 6 micro-batches from "
                                   "0F5 on, but the cap is 5")
    change(explorer, cap=7.0)
    assert explorer.view.error == ""


def test_a_control_changes_the_view_in_place_by_one_message():
    explorer, sent = explore_pipeline(), []
    shown, number = explorer.view, explorer.view.data["id"]
    explorer.view.observe(lambda change: sent.append(change["name"]), ["data"])
    values = dict(schedule="GPipe", p=3, m=6, compare="ZB-H1", F=2.0, I=3.0, W=1.5, latency=0.1,
                  machine="NVLink: one DGX H100", message=4.0, barrier=True, kept=0.5, v=3, pair=4)
    without_effect = {"latency": 0, "v": 0, "pair": 0}  # latency is 0.1 while a machine is set
    for name, value in values.items():
        before, shown_before = len(sent), dict(shown.data)
        change(explorer, **{name: value})
        assert len(sent) - before <= 1 and (name in without_effect or shown.data != shown_before)
    assert explorer.view is shown and shown.data["id"] == number and not shown.error
    assert "Pipeline GPipe above ZB-H1, p=3, m=6" in repr(explorer)


def test_places_cost_what_their_wires_cost():
    spans = {}
    for place in PLACES:
        explorer = explore_pipeline("gpipe", machine=place, message_mib=16.0, latency=0.0)
        spans[place.split(":")[0]] = explorer.timeline("GPipe").makespan - 33e-3
    one_way = {"NVLink": 3.4e-6 + 2**24 / 450e9, "leaf": 9.6e-6 + 2**24 / 50e9}
    for name, seconds in one_way.items():
        assert spans[name] == pytest.approx(6 * seconds)  # GPipe exposes 2 (p-1) transfers
    assert spans["spine"] == pytest.approx(spans["leaf"])  # full bisection: spine wires are alike


LEARNERS = [[Op(r, kind, j) for kind in "FB" for j in range(3)] for r in range(2)]


def test_a_learners_lists_or_function_are_drawn_like_any_other():
    by_list = explore_pipeline(LEARNERS, compare="gpipe", m=3, p=2)
    assert bars(by_list.view, 0) == bars(by_list.view, 1)
    by_function = explore_pipeline(lambda p, m: [list(ops) for ops in gpipe(p, m)], p=2, m=3)
    assert bars(by_function.view) == bars(by_list.view)
    change(by_function, p=4)
    assert len(by_function.view.data["panels"][0]["rows"]) == 4
    assert by_function.controls["schedule"] == OWN


@pytest.mark.parametrize("change_it, why", [
    (lambda s: s[0].pop(), "0B2 is missing"),
    (lambda s: s[0].append(Op(0, "F", 0)), "rank 0 runs 0F0 twice"),
    (lambda s: s[1].reverse(), "before"),
    (lambda s: s[1].append("later"), "must be an Op"),
])
def test_an_illegal_schedule_is_shown_with_its_reason(change_it, why):
    lists = [list(ops) for ops in LEARNERS]
    change_it(lists)
    explorer = explore_pipeline(lists)
    assert why in explorer.view.error and why in repr(explorer)
    assert explorer.view.data["clock"]["unit"] == "entries" and "svg" in explorer.view.still()
    assert len(bars(explorer.view, kinds="FBIWother")) == sum(map(len, lists))
    change(explorer, schedule="1F1B")
    assert explorer.view.error == "" and explorer.view.data["clock"]["unit"] == "ms"


def test_a_setting_that_does_not_exist_is_said_and_the_picture_stays():
    explorer = explore_pipeline("interleaved 1f1b")
    before = explorer.view.data
    change(explorer, m=7)
    assert "m=7: must be a multiple of p=4" in explorer.view.error
    assert explorer.view.data == before
    change(explorer, m=12)
    assert explorer.view.error == "" and explorer.view.data != before


@pytest.mark.parametrize("wrong", [
    {"schedule": "best"}, {"p": 0}, {"p": 9}, {"m": 33}, {"m": True}, {"machine": "phone"},
    {"times": {"G": 1}}, {"controls": ("speed",)}, {"compare": "best"}])
def test_a_wrong_argument_is_named(wrong):
    with pytest.raises(ValueError, match=f"({next(iter(wrong))}|schedule)=.*(must be|none of)"):
        explore_pipeline(**wrong)


def test_the_page_plays_without_a_kernel(tmp_path):
    explorer = explore_pipeline("zb-h1", compare="1f1b")
    explorer.save_html(tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text()
    assert "activations in flight" in text and "(p-1)(F+I-W)" in text


@pytest.mark.parametrize("schedule", [one_f_one_b(4, 8), interleaved_1f1b(4, 8), dualpipe(4, 8)],
                         ids=["1f1b", "interleaved", "dualpipe"])
def test_a_trace_is_shown_as_the_schedule_it_ran(schedule):
    trace = lower(schedule, lambda ops: 2e-3 * len(ops), nbytes=50 * 2**20)
    view = show_pipeline(trace, machine=dgx_h100(1))
    timeline = time_schedule(schedule, {"F": 2e-3, "B": 2e-3, "I": 2e-3, "W": 2e-3},
                             machine=dgx_h100(1), nbytes=50 * 2**20)
    expected = PipelinePanel("", timeline)
    real = view.data["panels"][0]
    assert sorted(b[4] for b in bars(view)) == sorted(
        bar[4] for bar in expected.bars if bar[3] in "FBIW")
    assert max(b[2] for b in bars(view)) == pytest.approx(timeline.makespan)
    assert len(real["messages"]) == len(timeline.messages)
    assert view.data["panels"][1]["title"].startswith("ideal: makespan")


def test_a_trace_with_given_times_is_the_timed_schedule():
    trace = lower(zb_h1(4, 8), lambda ops: 0.7)
    text = repr(show_pipeline(trace, times={"W": 0.5}))
    best = time_schedule(zb_h1(4, 8), {"F": 1, "I": 1, "W": 0.5})
    assert f"fraction {best.bubble_fraction:.4f} above ideal" in text and "given times" in text


def test_a_run_of_something_else_or_another_schedule_is_refused():
    trace = lower(gpipe(2, 2), lambda ops: 1.0)
    with pytest.raises(ValueError, match="step=1: the run has no computation"):
        show_pipeline(trace, machine=unit(), step=1)
    with pytest.raises(ValueError, match="lists 0F2, which the run has not recorded"):
        show_pipeline(trace, gpipe(2, 3), machine=unit())


def test_the_chart_has_a_timed_schedule_at_each_point():
    figure = bubble_chart(p=(2, 4), m=(4, 16))
    for curve, p in zip(figure.data, (2, 4)):
        assert list(curve.y) == pytest.approx([(p - 1) / (m + p - 1) for m in (4, 16)])
    figure = bubble_chart(("1f1b", "interleaved 1f1b"), p=4, m=(4, 6, 8), definition="ratio")
    assert [list(curve.x) for curve in figure.data] == [[4, 6, 8], [4, 8]]
    assert list(figure.data[1].y) == pytest.approx([3 / 8, 3 / 16])
    with pytest.raises(ValueError, match="definition='share'"):
        bubble_chart(definition="share")


def test_change_to_redraw_takes_at_most_a_fifth_of_a_second(capsys):
    explorer, found = explore_pipeline("gpipe", 8, 32), {}
    for name in ("1F1B", "ZB-H1", "ZB-H2"):
        begin = time.perf_counter()
        change(explorer, schedule=name)
        found[name] = time.perf_counter() - begin
    with capsys.disabled():
        print("\n8 x 32 redrawn in", re.sub(r"[{}']", "", str(
            {name: f"{seconds * 1e3:.0f} ms" for name, seconds in found.items()})))
    assert min(found.values()) < 5 * 0.2
