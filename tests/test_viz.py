"""Views: what they draw, text forms, static pictures, pages, and errors that people can see."""

import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import plotly.graph_objects as go
import pytest

from course_lib.machine import dgx_h100, unit
from course_lib.trace import Event, Trace
from course_lib.virtual_time import replay
from course_lib.viz import (
    MEANINGS,
    View,
    colour,
    machine_picker,
    on_failure,
    predict,
    show,
    show_diff,
    show_source,
    style,
    wait_for,
)
from course_lib.viz import view as view_module
from course_lib.viz.rows import bytes_text, clock, document, time_text

RING = {"world_size": 4, "notes": {3: "has finished"},
        "edges": [(0, 1, "recv from rank 1"), (1, 2, "recv from rank 2"),
                  (2, 0, "recv from rank 0")]}


def ring_trace(world_size, chunk=3):
    """The program of a ring all-reduce: reduce-scatter with additions, then all-gather."""
    trace, made = Trace(world_size), {"source": ("/somewhere/collectives.py", 41)}
    for rank in range(world_size):
        program = trace.programs[rank, "main"] = []
        wire = {"nbytes": 4 * chunk, "dtype": "float32", "shape": (chunk,), "channel": "world#1"}
        program.append(Event("alloc", nbytes=48, category="parameter", label="x"))
        call = dict(label="ring_all_reduce", channel="world#1")
        program.append(Event("begin", **call))  # gamma is for additions inside a collective
        for step in range(2 * (world_size - 1)):
            before, after = (rank - 1) % world_size, (rank + 1) % world_size
            program += [Event("irecv", peer=before, requests=(2 * step,), **wire, **made),
                        Event("isend", peer=after, requests=(2 * step + 1,), **wire, **made),
                        Event("wait", requests=(2 * step, 2 * step + 1), **made)]
            if step < world_size - 1:
                program.append(Event("compute", label="add", flops=chunk, **made))
        program.append(Event("end", **call))
    return trace


def pair_trace():
    """Rank 0 computes for 3 s and then sends; rank 1 receives at once."""
    what = {"nbytes": 2, "channel": "world", "source": ("group.py", 7)}
    return Trace(2, {(0, "main"): [Event("compute", label="F0", seconds=3.0),
                                   Event("send", peer=1, **what)],
                     (1, "main"): [Event("recv", peer=0, **what)]})


def test_ring_rows_bars_messages_and_steps():
    data = show(ring_trace(4)).data
    panel = data["panels"][0]
    assert panel["rows"] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert len(panel["messages"]) == 24 and len(panel["bars"]) == 48
    assert [bar[4] for bar in panel["bars"] if bar[0] == 2][:2] == ["← 1", "→ 3"]
    assert {bar[5] for bar in panel["bars"] if bar[3] == "send"} == {1}
    times = [step[0] for step in data["steps"]]
    assert times == sorted(times) and times[0] == 0.0 and times[-1] == data["clock"]["end"] == 6.0
    sends = [step for step in data["steps"] if " sends " in step[1]]
    assert sends[0][1] == "rank 0 sends 12 B to rank 1 (collectives.py:41)"
    message = panel["messages"][sends[5][4][0]]
    assert {panel["bars"][bar][0] for bar in sends[5][3]} == {message[0], message[1]}
    assert panel["strips"][0]["series"] == [[0.0, {"parameter": 48}]]


def test_waiting_is_not_the_same_as_being_on_the_wire():
    bars = show(pair_trace(), machine=unit()).data["panels"][0]["bars"]
    assert [0, 0.0, 3.0, "F", "F0", 0] in bars
    assert [1, 0.0, 3.0, "wait", "for 0", 0] in bars
    assert [1, 3.0, 5.0, "recv", "← 0", 0] in bars and [0, 3.0, 5.0, "send", "→ 1", 0] in bars
    sentences = [step[1] for step in show(pair_trace(), machine=unit()).data["steps"]]
    assert "rank 1 waits for rank 0 (group.py:7)" in sentences


def test_streams_get_rows_and_ranks_can_be_chosen():
    trace = pair_trace()
    trace.programs[0, "comm"] = [Event("compute", label="add", seconds=1.0)]
    assert show(trace).data["panels"][0]["rows"] == ["rank 0", "rank 0 · comm", "rank 1"]
    some = show(ring_trace(4), ranks=[1, 2]).data["panels"][0]
    assert some["rows"] == ["rank 1", "rank 2"] and len(some["messages"]) == 6
    with pytest.raises(ValueError, match=r"ranks=\[4\]: must be ranks of 0..3"):
        show(ring_trace(4), ranks=[4])


def test_text_form_is_stable_and_follows_the_step():
    one, two = show(ring_trace(4)), show(ring_trace(4))
    assert repr(one) == repr(two) == ("Timeline of 4 ranks on unit steps: 24 messages, "
                                      "makespan 6.0000 s, step 0 of 25")
    one.step = 3
    assert repr(one).endswith("step 3 of 25")
    with pytest.raises(Exception, match=r"step=26: must be in 0..25"):
        one.step = 26


def test_static_picture_is_deterministic_xml_and_small():
    one, two = show(ring_trace(4)), show(ring_trace(4))
    assert one.still() == two.still() and one.data == two.data
    root = ElementTree.fromstring(one.still())
    words = [node.text for node in root.iter() if node.text]
    assert "rank 3" in words and "→ 1" in words
    assert show(ring_trace(4), machine=unit()).data["id"] != one.data["id"]
    many = show(ring_trace(24))
    assert len(many.data["panels"][0]["bars"]) == 2208 and len(many.still()) < 130_000


def outputs_of(widget, monkeypatch):
    shown = []
    monkeypatch.setattr(view_module, "display", lambda data, raw: shown.append(data))
    widget._ipython_display_()
    return shown


def test_display_gives_the_picture_first_and_then_the_widget(monkeypatch):
    view = show(ring_trace(3))
    still, live = outputs_of(view, monkeypatch)
    assert "data:image/svg+xml;base64," in still["text/html"]
    assert f'data-lockstep="{view.data["id"]}"' in still["text/html"]
    assert still["text/plain"] == live["text/plain"] == repr(view)
    assert "application/vnd.jupyter.widget-view+json" in live and "text/html" not in live


@pytest.mark.parametrize("make", [
    lambda: show(ring_trace(3)), lambda: wait_for(RING), lambda: show_source(ring_trace),
    lambda: show_diff(ring_trace, pair_trace), lambda: predict("How many?", 3),
    lambda: machine_picker(ring_trace(3), {"unit": unit()})])
def test_no_output_contains_a_memory_address_or_a_machine_path(make, monkeypatch):
    thing = make()
    texts = [repr(thing)]
    if hasattr(thing, "_ipython_display_"):
        texts += [text for data in outputs_of(thing, monkeypatch)
                  for kind, text in data.items() if kind.startswith("text/")]
    elif hasattr(thing, "_repr_html_"):
        texts.append(thing._repr_html_())
    for text in texts:
        assert not re.search(r"0x[0-9a-f]{6}|/home/|/tmp/|site-packages", text)


def test_saved_page_needs_no_network(tmp_path):
    path = tmp_path / "ring.html"
    show(ring_trace(4)).save_html(path)
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\s\"'\\]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", text)
    assert text.count("</script") == 1


def test_picker_replays_in_place_with_one_message(monkeypatch):
    picker = machine_picker(ring_trace(4), {"unit": unit(), "H100": dgx_h100()})
    view, sent = picker.view, []
    assert repr(picker) == ("Timeline of 4 ranks on unit: 24 messages, makespan 72.0000 s; "
                            "also on H100")
    name = view.data["id"]
    monkeypatch.setattr(View, "send_state", lambda self, key=None: sent.append(key))
    picker.choice.value = "H100"
    assert picker.view is view and view.data["id"] == name and "µs" in repr(picker)
    assert 1 <= len(sent) <= 2


def test_a_timeline_may_stand_in_the_place_of_a_machine():
    ready = replay(ring_trace(8), unit())
    picker = machine_picker(ring_trace(4), {"4 ranks": unit(), "8 ranks": ready})
    picker.choice.value = "8 ranks"
    assert len(picker.view.data["panels"][0]["rows"]) == 8
    assert repr(picker).startswith("Timeline of 8 ranks on unit: 112 messages")


def test_error_in_a_control_is_visible_and_goes_away():
    small = Event("compute", label="F0")
    picker = machine_picker(Trace(1, {(0, "main"): [small]}), {"unit": unit(), "broken": 7})
    picker.choice.value = "broken"
    assert picker.view.error.startswith("TypeError")
    with pytest.raises(TypeError):
        picker.pick()
    picker.choice.value = "unit"
    assert picker.view.error == ""


def test_wait_for_text_and_picture():
    picture = wait_for(RING)
    assert repr(picture).split("\n") == [
        "Who waits for whom, 4 ranks: a cycle 0 -> 1 -> 2 -> 0",
        "  rank 0 -> rank 1: recv from rank 1", "  rank 1 -> rank 2: recv from rank 2",
        "  rank 2 -> rank 0: recv from rank 0", "  rank 3: has finished"]
    words = [node.text for node in ElementTree.fromstring(picture.still()).iter() if node.text]
    assert "has finished" in words and "cycle 0 → 1 → 2 → 0" in words
    assert picture.still() == wait_for(RING).still()
    chain = wait_for({"world_size": 2, "edges": [(0, 1, "recv from rank 1")], "notes": {}})
    assert chain.cycle == [] and "no cycle" in repr(chain)
    with pytest.raises(ValueError, match=r"edges: \(0, 9\) is not between ranks 0..1"):
        wait_for({"world_size": 2, "edges": [(0, 9, "recv")], "notes": {}})


def test_wait_for_finds_a_cycle_behind_a_chain():
    edges = [(5, 2, "a"), (2, 3, "b"), (3, 4, "c"), (4, 2, "d")]
    assert wait_for({"world_size": 6, "edges": edges, "notes": {}}).cycle == [2, 3, 4]


def test_show_picks_the_view_and_refuses_what_it_cannot_draw():
    failed = RuntimeError("deadlock")
    failed.graph = RING
    assert repr(show(failed)) == repr(show(RING)) == repr(wait_for(RING))
    run = SimpleNamespace(trace=ring_trace(2))
    assert repr(show(run)) == repr(show(run.trace))
    with pytest.raises(ValueError, match="x: was run with record=False"):
        show(SimpleNamespace(trace=None))
    with pytest.raises(ValueError, match="x: is a int; must be"):
        show(7)
    on_failure(failed)  # outside a notebook: nothing to show, and nothing raised


def luminance(colour_text):
    parts = [int(colour_text[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_theme_has_a_second_sign_for_every_colour_and_legible_letters():
    signs = [(m.colour, m.letter, m.hatch) for m in MEANINGS.values()]
    assert len(set(signs)) == len(signs)
    for name, m in MEANINGS.items():
        if m.letter and m.colour.startswith("#"):
            pair = sorted([luminance(m.colour), luminance(m.ink)])
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, name
    with pytest.raises(ValueError, match="kind='G': must be one of compute, F"):
        colour("G")
    layout = style(go.Figure()).layout
    assert layout.paper_bgcolor == "rgba(0,0,0,0)" and layout.template.layout.font.size is None


def test_two_schedules_stack_on_one_clock():
    panels = [{"title": title, "rows": ["stage 0"], "bars": [[0, 0.0, 2.0, "F", "F0", 0]],
               "messages": [], "strips": []} for title in ("GPipe", "1F1B")]
    view = View(data=document("Two", "Two schedules", 4.0, panels, [[0.0, "stage 0 runs F0",
                                                                     1, [0], []]]))
    words = [node.text for node in ElementTree.fromstring(view.still()).iter() if node.text]
    assert words.index("GPipe") < words.index("1F1B") and words.count("F0") == 2
    assert repr(view) == "Two schedules, step 0 of 2"


def test_units():
    assert bytes_text(9_999) == "9,999 B" and bytes_text(10_240) == "10.0 KiB"
    assert bytes_text(3 * 2**30) == "3.0 GiB"
    assert time_text(2.5e-5, clock(2.5e-5)) == "25.0000 µs"
    assert time_text(0.0, clock(0.0)) == "0.0000 s" and time_text(123.0, clock(123.0)) == "123.00 s"


def test_too_many_bars_are_refused_with_advice():
    trace = Trace(1, {(0, "main"): [Event("compute", label="F0", seconds=1.0)] * 20_001})
    with pytest.raises(ValueError, match="20,001 bars: a page draws at most 20,000"):
        show(trace)
