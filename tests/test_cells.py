"""Cells that travel: the picture says of every rank what its memory holds, and how it came."""

import json
import re
import time
import xml.etree.ElementTree as ElementTree

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib import collectives as C
from course_lib import dry_run, replay, run_ranks
from course_lib.machine import unit
from course_lib.trace import Event, Trace
from course_lib.viz import (
    Cell,
    Lane,
    Stage,
    View,
    bytes_chart,
    explore_collectives,
    show,
    show_collective,
    unit_steps,
)
from course_lib.viz.cells import cells_at
from course_lib.viz.excerpt import one_call
from course_lib.viz.explore import OPS, collective_run
from course_lib.viz.flow import follow

SUMS = [op for op in C.__all__ if op.endswith("all_reduce") and not op.startswith("hier")]
RANKS = range(1, 9)


def data_of(op, ranks, size=13, root=0):
    return show_collective(dry_run(collective_run, ranks, op, size, root)).data


def end_of(data):
    """What is shown in the end: a row per slot, a column per rank; "-" for nothing."""
    held = cells_at(data["cells"], float("inf"))
    slots = sum(len(lane["slots"]) for lane in data["cells"]["lanes"])
    words = {spot: label or "".join(map(str, has)) for spot, (label, _, _, has) in held.items()}
    return [" ".join(words.get((rank, slot), "-") for rank in range(len(data["cells"]["places"])))
            for slot in range(slots)]


@pytest.mark.parametrize("op", SUMS)
@pytest.mark.parametrize("ranks", RANKS)
def test_after_an_all_reduce_every_cell_contains_every_rank_once(op, ranks):
    data = data_of(op, ranks)
    held = cells_at(data["cells"], data["clock"]["end"])
    slots = len(data["cells"]["lanes"][0]["slots"])
    assert len(held) == ranks * slots
    if ranks > 1:
        assert {tuple(look[3]) for look in held.values()} == {tuple(range(ranks))}
        assert {(kind, of) for _, kind, of, _ in held.values()} == {("whole", ranks)}
    assert sum(data["cells"]["lanes"][0]["sizes"]) == 13


@pytest.mark.parametrize("op", SUMS)
@pytest.mark.parametrize("ranks", RANKS)
def test_all_reduce_adds_each_element_of_each_rank_once_element_by_element(op, ranks):
    trace = one_call(dry_run(collective_run, ranks, op, 11, 0))
    flow = follow(replay(trace, unit_steps(trace)))
    for rank in range(ranks):
        elements = []
        for part in flow.returned[rank]:
            for count, holds in flow.at_end(rank, part):
                elements += [tuple((r, e + i) for r, e in holds) for i in range(count)]
        assert elements == [tuple((r, e) for r in range(ranks)) for e in range(11)] or (
            ranks == 1 and elements == [((0, e),) for e in range(11)])


@pytest.mark.parametrize("op, rows", [
    ("broadcast", ["1 1 1"]), ("tree_broadcast", ["1 1 1"]),
    ("reduce", ["0 012 2"]), ("tree_reduce", ["0 012 2"]),
    ("scatter", ["- 1 → 0 -", "- 1 → 1 -", "- 1 → 2 -", "1 → 0 1 → 1 1 → 2"]),
    ("gather", ["0 1 2", "- 0 -", "- 1 -", "- 2 -"]),
    ("all_gather", ["0 1 2", "0 0 0", "1 1 1", "2 2 2"]),
    ("reduce_scatter", ["0 1 2"] * 3 + ["012 012 012"]),
    ("all_to_all", ["0 → 0 1 → 0 2 → 0", "0 → 1 1 → 1 2 → 1", "0 → 2 1 → 2 2 → 2",
                    "0 → 0 0 → 1 0 → 2", "1 → 0 1 → 1 1 → 2", "2 → 0 2 → 1 2 → 2"])])
def test_what_three_ranks_hold_in_the_end(op, rows):
    assert end_of(data_of(op, 3, root=1)) == rows


def check_no_cell_from_nowhere(data):
    """Cells change only by what the rank holds already and by what has arrived; a cell on its way
    looks as its source does."""
    cells = data["cells"]
    arrived = [(end, into, place, set(cells["looks"][look][3]) or {cells["looks"][look][0]})
               for _, end, _, _, place, into, look in cells["flights"]]
    own = {}  # rank -> what it has ever had
    for when, place, _, look in cells["changes"]:
        if look < 0:
            continue
        label, _, of, has = cells["looks"][look]
        new = set(has) if of else {label}
        known = own.setdefault(place, set())
        if when > 0:
            for end, _, target, what in arrived:
                if target == place and end <= when:
                    known |= what
            assert new <= known, (when, place, new, known)
        known |= new
    for start, _, place, slot, _, _, look in cells["flights"]:
        assert cells_at(cells, start)[place, slot] == cells["looks"][look]


@pytest.mark.parametrize("op", [*OPS, "all_reduce", "pairwise_all_to_all"])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
def test_no_cell_appears_from_nowhere(op, ranks):
    check_no_cell_from_nowhere(data_of(op, ranks, root=ranks - 1))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(OPS), st.integers(1, 8), st.integers(1, 40), st.integers(0, 7))
def test_any_setting_can_be_shown(op, ranks, size, root):
    data = data_of(op, ranks, size, root % ranks)
    check_no_cell_from_nowhere(data)
    assert not any(kind == "mixed" for _, kind, _, _ in data["cells"]["looks"])
    total = sum(held.get("send", 0) for row in data["cells"]["meters"][0]["series"]
                for _, held in row[-1:])
    trace = dry_run(collective_run, ranks, op, size, root % ranks)
    assert total == sum(trace.bytes_sent(rank) for rank in range(ranks))


def own_ring(group, shift=1, twice=False):
    """A learner's all-reduce: no library call, additions by an operator."""
    x, r, W = torch.arange(6.0), group.rank, group.size
    chunks = list(x.tensor_split(W))
    for step in range(2 * (W - 1)):
        reduce = step < W - 1
        send = (r - step - 1) % W if reduce else (r - step + W - 1) % W
        recv = (send - 1) % W
        incoming = group.exchange(chunks[send], (r + 1) % W, torch.empty(2), (r - 1) % W)
        if reduce:
            chunks[(recv + shift - 1) % W] += incoming
            if twice:
                chunks[recv] += incoming
        else:
            chunks[recv].copy_(incoming)
    return x


def test_a_learners_own_ring_is_followed_and_its_mistakes_are_seen():
    run = run_ranks(own_ring, 3)
    assert run.results[0].tolist() == [3 * e for e in range(6)]
    view = show_collective(run)
    assert end_of(view.data) == ["012 012 012"] * 3
    assert repr(view) == ("messages on 3 ranks: 12 messages in 4 steps, 32 B sent by each rank, "
                          "makespan 4.0000 s, step 0 of 5")
    for wrong in ({"shift": 2}, {"twice": True}):
        looks = show_collective(dry_run(own_ring, 3, **wrong)).data["cells"]["looks"]
        assert any(kind == "mixed" for _, kind, _, _ in looks)
    twice = show_collective(dry_run(own_ring, 3, twice=True)).data["cells"]["looks"]
    assert any(label.endswith(" twice") for label, _, _, _ in twice)


def where(trace):
    return {key: [(e.kind, e.parts, e.moves) for e in program]
            for key, program in trace.programs.items()}


def test_a_dry_run_says_the_same_parts_and_moves_as_a_real_run():
    def work(group):
        C.ring_all_reduce(torch.arange(9.0), group)
        C.gather(torch.arange(2.0), group, root=1)
        own_ring(group)

    real = run_ranks(work, 3)
    assert where(real.trace) == where(dry_run(work, 3))
    first, second = show_collective(real, call=0), show_collective(real, call=1)
    assert first.data["title"] == "ring_all_reduce on 3 ranks" and end_of(second.data)[3] == "- 2 -"
    with pytest.raises(ValueError, match="call=2: rank 0 has made 2 collective calls"):
        show_collective(real, call=2)
    assert show_collective(real).data["title"] == "messages on 3 ranks"
    assert repr(show(real)).startswith("Timeline of 3 ranks")


def test_a_collective_on_a_background_stream_is_shown_too():
    def work(group):
        stream = group.stream("comm")
        stream.submit(C.ring_all_reduce, torch.ones(6), stream.group).wait()

    assert end_of(show_collective(dry_run(work, 3), call=0).data) == ["012 012 012"] * 3


def test_what_cannot_be_followed_is_refused():
    wire = {"nbytes": 4, "channel": "world"}
    bare = Trace(2, {(0, "main"): [Event("send", peer=1, **wire)],
                     (1, "main"): [Event("recv", peer=0, **wire)]})
    with pytest.raises(ValueError, match="do not say which part of the memory they carry"):
        show_collective(bare)
    with pytest.raises(ValueError, match="x: is a int; must be"):
        show_collective(7)
    with pytest.raises(ValueError, match="call=0: a Timeline has its clock already"):
        show_collective(replay(bare, unit()), call=0)
    with pytest.raises(ValueError, match="slots: a picture has at most 96"):
        show_collective(dry_run(lambda g: C.ring_all_reduce(torch.ones(104), g, 13), 8))


def test_steps_name_what_travels_who_waits_and_the_line():
    steps = [step[1] for step in data_of("naive_all_reduce", 4)["steps"]]
    assert re.fullmatch(r"rank 1 sends its x to rank 0; waiting: ranks 2, 3 \(rooted.py:\d+\)",
                        steps[1])
    assert "rank 0 sends the complete x to rank 2; waiting: rank 3" in steps[5]
    ring = [step[1] for step in data_of("ring_all_reduce", 4)["steps"]]
    assert ring[3].startswith("rank 0 sends chunk 1 (3 of 4 added) to rank 1; rank 1 sends chunk 2")
    assert "2 more likewise (many.py:" in ring[3] and len(ring) == 8


def test_ranks_stand_on_a_ring_only_when_the_messages_do():
    assert data_of("ring_all_reduce", 4)["cells"]["arrange"] == "ring"
    assert data_of("naive_all_reduce", 4)["cells"]["arrange"] == "columns"
    assert data_of("ring_all_reduce", 8)["cells"]["arrange"] == "columns"


def test_other_stories_are_written_with_the_same_verbs():
    """Two ranks, two kinds of state in lanes: a gradient is reduced to its owner and freed."""
    lanes = [Lane("gradients", ("g0", "g1"), across=2), Lane("master", ("m0", "m1"), across=2)]
    stage = Stage(["rank 0", "rank 1"], lanes)
    for rank in (0, 1):
        for slot in (0, 1):
            stage.put(0.0, (rank, slot), Cell("", "gradient", 2, (rank,)))
    stage.merge(1.0, 2.0, (1, 0), (0, 0))
    stage.free(2.0, (1, 0))
    stage.move(2.0, 3.0, (1, 1), (1, 3))
    stage.copy(3.0, 4.0, (1, 3), (0, 3))
    held = [cells_at(stage.data(), t) for t in (1.5, 2.0, 2.5, 4.0)]
    assert held[0][0, 0] == ["", "gradient", 2, [0]] and (1, 0) in held[0]
    assert held[1][0, 0] == ["", "whole", 2, [0, 1]] and (1, 0) not in held[1]
    assert (1, 1) not in held[2] and (1, 3) not in held[2]
    assert held[3][1, 3] == held[3][0, 3] == ["", "gradient", 2, [1]]
    assert [f[:2] for f in stage.data()["flights"]] == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match=r"spot=\(2, 0\): must be one of 2 places and 4 slots"):
        stage.free(5.0, (2, 0))
    with pytest.raises(ValueError, match="arrange='pile': must be columns or ring"):
        Stage(["rank 0"], lanes, arrange="pile")


def test_text_form_picture_and_page(tmp_path):
    one, two = explore_collectives().view, explore_collectives().view
    assert one.data == two.data and one.still() == two.still()
    words = [n.text for n in ElementTree.fromstring(one.still()).iter() if n.text]
    assert {"before", "in the middle, 3.0000 s", "at the end, 6.0000 s", "chunk 3"} <= set(words)
    one.save_html(tmp_path / "ring.html")
    page = (tmp_path / "ring.html").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'\\]+", page)) == {"http://www.w3.org/2000/svg"}
    assert len(page) < 120_000 and len(json.dumps(one.data)) < 20_000


def test_every_control_changes_the_text_in_place_with_few_messages(monkeypatch):
    explorer = explore_collectives("broadcast", ranks=3, root=2)
    view, name = explorer.view, explorer.view.data["id"]
    assert repr(explorer) == ("broadcast of 8 elements on 3 ranks, root 2: 2 messages in 2 steps, "
                              "sent by rank 0: 0 B, 1: 0 B, 2: 64 B, makespan 2.0000 s; controls: "
                              "op, ranks, size, root")
    sent = []
    monkeypatch.setattr(View, "send_state", lambda self, key=None: sent.append(key))
    for control, value, text in (
            (explorer.size, 16, "16 elements"), (explorer.ranks, 2, "2 ranks, root 1"),
            (explorer.root, 0, "root 0"), (explorer.op, "ring_all_reduce", "ring_all_reduce of")):
        del sent[:]
        begin = time.perf_counter()
        control.value = value
        assert time.perf_counter() - begin < 1.0
        assert text in repr(explorer) and 1 <= len(sent) <= 2
    assert explorer.root.layout.display == "none" and explorer.root.max == 1
    assert explorer.view is view and view.data["id"] == name and view.step == 0


def test_an_error_in_a_control_is_shown_and_goes_away():
    explorer = explore_collectives()
    explorer.machine = 7
    explorer.size.value = 9
    assert explorer.view.error.startswith("TypeError: machine=7")
    explorer.machine = None
    explorer.size.value = 10
    assert explorer.view.error == "" and "of 10 elements" in repr(explorer)


@pytest.mark.parametrize("arguments, message", [
    ({"op": "dance"}, "op='dance': must be one of broadcast"), ({"op": "barrier"}, "op='barrier'"),
    ({"ranks": 9}, r"ranks=9: must be a whole number in 1..8"), ({"size": 0}, "size=0"),
    ({"root": 4}, r"root=4: must be a whole number in 0..3"), ({"ranks": True}, "ranks=True")])
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        explore_collectives(**arguments)


def test_chart_of_bytes_equals_the_trace():
    trace = dry_run(collective_run, 4, "naive_all_reduce", 8, 0)
    sent, received, table = bytes_chart(trace).data
    assert list(sent.y) == [trace.bytes_sent(rank) for rank in range(4)] == [96, 32, 32, 32]
    assert list(received.y) == [96, 32, 32, 32]
    assert [list(row) for row in table.z][1] == [32, None, None, None]


@pytest.mark.soak
def test_the_explorer_shows_what_a_run_of_the_same_call_shows():
    for op in ("broadcast", "ring_all_reduce", "all_to_all"):
        shown = explore_collectives(op, ranks=3, size=7).view.data
        run = run_ranks(collective_run, 3, op, 7, 0)
        assert shown["cells"] == show_collective(run).data["cells"]
        assert shown["steps"] == show_collective(run).data["steps"]


def test_messages_in_a_circle_that_leaves_ranks_out_are_no_ring():
    def work(group):  # 0 -> 1 -> 2 -> 1
        x = torch.ones(2)
        if group.rank == 0:
            group.send(x, 1)
        elif group.rank == 1:
            group.recv(x, 0)
            group.exchange(x, 2, torch.empty(2), 2)
        else:
            group.exchange(x, 1, torch.empty(2), 1)

    data = show_collective(dry_run(work, 3)).data
    assert data["cells"]["arrange"] == "columns" and len(data["cells"]["flights"]) == 3
