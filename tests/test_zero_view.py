"""The ZeRO player draws what the run held and sent: every cell and every byte from its trace."""

import json
import re
import time
from collections import Counter

import pytest
import torch

from course_lib import costs, run_ranks
from course_lib.viz import View, explore_zero, memory_chart, show_zero
from course_lib.viz.cells import cells_at
from course_lib.viz.excerpt import between
from course_lib.viz.memory import held_through, peak_of, thinned
from course_lib.viz.zero_runs import STAGES, make, recorded
from course_lib.viz.zero_story import WHERE, code_text, line_of
from course_lib.viz.zero_view import MARKS, zero_data

soak = pytest.mark.soak
CASES = [(2, 4), (3, 2), (0, 3), *(pytest.param(*case, marks=soak) for case in (
    (0, 2), (0, 4), (1, 2), (1, 3), (1, 4), (2, 2), (2, 3), (3, 3), (3, 4), ("3 prefetch", 2),
    ("3 prefetch", 3), ("3 prefetch", 4), ("1 all-reduce", 3), ("1 all-reduce", 4)))]
LANES = ("parameters", "gradients", "master", "moment m", "moment v")


def player(stage, ranks, model="12 parameters"):
    return zero_data({"run": recorded(stage, ranks, model)})


def counted(data, moment):
    """Cells per (rank, lane) at a moment."""
    lanes = [lane["name"] for lane in data["cells"]["lanes"] for _ in lane["slots"]]
    return Counter((place, lanes[slot]) for place, slot in cells_at(data["cells"], moment))


@pytest.mark.parametrize("stage, ranks", CASES)
def test_cells_are_what_the_stage_keeps(stage, ranks):
    data, number = player(stage, ranks), int(str(stage)[0])
    shard = -(-4 // ranks) * 3  # of three units of 4, padded one by one
    whole = 12 if number == 0 else shard * ranks
    for moment in (0.0, data["clock"]["end"]):
        seen = counted(data, moment)
        for rank in range(ranks):
            assert seen[rank, "parameters"] == (shard if number == 3 else whole)
            assert seen[rank, "gradients"] == 0
            for lane in LANES[2:]:
                assert seen[rank, lane] == (whole if number == 0 else shard)
    labels = {look[0] for look in cells_at(data["cells"], data["clock"]["end"]).values()}
    assert labels - {"–"} == {"2"}  # every cell contains both updates in the end
    assert ("–" in labels) == (ranks == 3 and number > 0)


@pytest.mark.parametrize("stage, ranks", CASES)
def test_meters_end_at_the_bytes_of_the_formula(stage, ranks):
    data, number = player(stage, ranks), int(str(stage)[0])
    memory, sent = data["cells"]["meters"]
    padded = -(-4 // ranks) * ranks * 3
    want = costs.zero_sent_bytes(2 * padded, ranks, number) * (
        3 / 2 if stage == "1 all-reduce" else 1)
    if number == 0:  # a ring of 4 elements in 3 parts of 2, 1 and 1: not all ranks send as much
        want = sum(s[-1][1]["send"] for s in sent["series"]) / ranks
        assert want == costs.zero_sent_bytes(2 * 12, ranks, 0)
        sent = {"series": []}
    assert [series[-1][1]["send"] for series in sent["series"]] == [want] * len(sent["series"])
    state = costs.zero_state_bytes([4] * 3, ranks, number)
    for series in memory["series"]:
        for held in (series[0][1], series[-1][1]):
            assert {kind: held[kind] for kind in ("parameter", "optimizer")} == {
                kind: state[kind] for kind in ("parameter", "optimizer")}
            assert "gradient" not in held


def test_gradients_are_reduced_unit_by_unit_in_stage_2_and_all_together_in_stage_1():
    most = {stage: max(counted(data, step[0])[0, "gradients"] for step in data["steps"])
            for stage in (1, 2) for data in [player(stage, 4)]}
    assert most == {1: 12, 2: 4 + 2}  # in stage 2: a whole unit, and a shard of each before it


def test_a_sum_contains_every_rank_before_it_is_kept():
    data = player(2, 4)
    looks = data["cells"]["looks"]
    flying = [(tuple(looks[f[6]][3]), looks[f[6]][1]) for f in data["cells"]["flights"]]
    assert {len(has) for has, kind in flying if kind == "buffer"} == {1, 2, 3}
    kept = [has for _, kind, of, has in looks if kind == "gradient" and len(has) > 1]
    assert kept == [[0, 1, 2, 3]]


def test_stage_3_holds_one_unit_at_a_time_and_two_with_prefetch():
    def units_whole(data, moment):
        held, whole = cells_at(data["cells"], moment), 0
        for unit in range(3):
            whole += all((0, 4 * unit + cell) in held for cell in range(4))
        return whole

    for stage, most in ((3, 1), ("3 prefetch", 2)):
        data = player(stage, 2)
        moments = {change[0] for change in data["cells"]["changes"]}
        assert max(units_whole(data, moment) for moment in moments) <= most
        assert max(units_whole(data, moment) for moment in moments) >= 1


def test_each_step_has_a_sentence_and_library_lines_name_themselves():
    data = player(3, 2)
    steps, code = data["steps"], data["cells"]["code"]
    assert len(steps) == len(code) and all(step[1] for step in steps)
    assert all(re.fullmatch(r"\w+\.py:\d+   \S.*", line) for line in code[1:-1])
    told = " ".join(step[1] for step in steps)
    for words in ("runs its forward pass", "all-gather of unit 0: rank 0 sends", "frees unit 1",
                  "reduce-scatter of unit 2", "updates what it keeps"):
        assert words in told
    gathers = [line for step, line in zip(steps, code) if "all-gather" in step[1]]
    assert gathers and all("all_gather_into" in line for line in gathers)
    for what, (_, text) in WHERE.items():
        assert text in code_text(line_of(what))


def test_two_runs_side_by_side_on_one_clock():
    explorer = explore_zero(1, 2, compare=2)
    data = explorer.view.data
    assert [place["name"] for place in data["cells"]["places"]] == [
        "ZeRO-1 0", "ZeRO-1 1", "ZeRO-2 0", "ZeRO-2 1"]
    assert [panel["title"] for panel in data["panels"]] == ["ZeRO-1", "ZeRO-2"]
    for first, stage in ((0, 1), (2, 2)):
        one = player(stage, 2)
        flights = [f for f in data["cells"]["flights"] if first <= f[2] < first + 2]
        assert len(flights) == len(one["cells"]["flights"])
    assert repr(explorer).startswith(
        "ZeRO-1 beside ZeRO-2: 12 parameters in 3 units on 2 ranks: ZeRO-1: rank 0 sends 24 B")


def test_controls_run_what_they_say_in_place(monkeypatch):
    explorer = explore_zero(2, 2)
    view, name, sent = explorer.view, explorer.view.data["id"], []
    monkeypatch.setattr(View, "send_state", lambda self, key=None: sent.append(key))
    for control, value, text in ((explorer.stage, 3, "ZeRO-3: 12 parameters"),
                                 (explorer.compare, 0, "ZeRO-3 beside DDP"),
                                 (explorer.compare, 3, "ZeRO-3: 12 parameters")):
        del sent[:]
        begin = time.perf_counter()
        control.value = value
        assert time.perf_counter() - begin < 5 * 1.0
        assert text in repr(explorer) and 1 <= len(sent) <= 2
    assert explorer.view is view and view.data["id"] == name and view.error == ""


def test_text_picture_and_page_are_the_same_each_time(tmp_path):
    one, two = show_zero(recorded(2, 2)), show_zero(recorded.__wrapped__(2, 2))
    assert one.data == two.data and one.still() == two.still() and len(one.still()) < 60_000
    one.save_html(tmp_path / "zero.html")
    page = (tmp_path / "zero.html").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'\\]+", page)) == {"http://www.w3.org/2000/svg"}
    assert repr(one) == (
        "ZeRO: 12 parameters in 3 units on 2 ranks: rank 0 sends 24 B, holds "
        f"{peak_of(recorded(2, 2))[0]} B at most and 124 B in the end; makespan "
        f"{one.data['clock']['end']:.4f} s, step 0 of {one.last}")


@soak
@pytest.mark.parametrize("stage", STAGES)
def test_the_gpt_is_drawn_by_shards(stage):
    data = player(stage, 4, "GPT")
    seen = counted(data, data["clock"]["end"])
    assert seen[0, "parameters"] == (4 if str(stage)[0] == "3" else 16)
    assert len(json.dumps(data)) < 600_000 and "shard" in " ".join(s[1] for s in data["steps"])


@pytest.mark.parametrize("arguments, message", [
    ({"stage": 4}, r"stage=4: must be one of 0, 1, 2, 3, '3 prefetch'"),
    ({"ranks": 5}, "ranks=5: must be one of 2, 3, 4"), ({"compare": "x"}, "compare='x'"),
    ({"stage": True}, "stage=True"), ({"model": "BERT"}, "model='BERT'")])
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        explore_zero(**arguments)


def test_a_run_without_marks_is_refused():
    run = run_ranks(lambda group: group.mark("step begins"), 2)
    with pytest.raises(ValueError, match="marks 'step begins' and 'step ends': rank 0 has not"):
        show_zero(run)


def test_memory_of_a_step_is_that_of_the_trace():
    trace = recorded(1, 4, "GPT").trace
    points, phases = held_through(trace, 0)
    assert [label for _, _, label in phases if not label.startswith("after")] == [
        "forward", "backward", "optimizer"]
    assert points[-1][1] == trace.held_at(0, "step ends")
    before, inside = between(trace, *MARKS)
    assert len(points) == 1 + sum(e.kind in ("alloc", "free") for e in inside.program(0))
    most = max(sum(held.values()) for _, held in points)
    assert peak_of(trace) == (most, "backward")
    assert max(sum(held.values()) for _, held in thinned(points)) == most
    assert len(thinned(points)) <= 81
    figure = memory_chart({"1": trace, "2": recorded(2, 4, "GPT")})
    drawn = [max(map(sum, zip(*(t.y for t in figure.data if t.xaxis == axis))))
             for axis in ("x", "x2")]
    assert drawn == [most, peak_of(recorded(2, 4, "GPT"))[0]] and drawn[1] < drawn[0]


def test_the_toy_is_the_notes_twelve_parameters():
    net = make("12 parameters")
    assert sum(p.numel() for p in net.parameters()) == 12 and len(net.units) == 3
    assert all(p.dtype == torch.bfloat16 for p in net.parameters())
