"""Machines drawn as boxes and wires: every byte of the replay is on a wire of the picture."""

import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace as variant
from functools import lru_cache

import pytest
import torch

from course_lib import dry_run, replay, run_ranks
from course_lib.collectives import all_to_all, ring_all_reduce
from course_lib.machine import (
    dgx_a100,
    dgx_h100,
    laptop,
    nvl72,
    pcie_server,
    tpu_v4,
    two_laptops,
    unit,
)
from course_lib.viz import graph
from course_lib.viz.graph import topology

MACHINES = [(unit(), 4), (laptop(), 1), (two_laptops(2), 4), (pcie_server(), 8),
            (pcie_server(3), 3), (pcie_server(8, servers=2), 16), (dgx_a100(2), 16),
            (dgx_h100(), 8), (dgx_h100(2), 16), (tpu_v4((4, 4)), 16), (tpu_v4((2, 2, 4)), 16),
            (dgx_h100(6, leaf_nodes=3), 48), (pcie_server(4, servers=12), 48)]
NAMES = [machine.name for machine, _ in MACHINES]


def everybody_to_everybody(group, elements):
    all_to_all([torch.zeros(elements) for _ in range(group.size)], group)


def ring(group, elements):
    ring_all_reduce(torch.zeros(elements), group)


@lru_cache
def played(machine, world_size, fn=everybody_to_everybody, elements=64):
    timeline = replay(dry_run(fn, world_size, elements), machine)
    return timeline, topology(machine, timeline)


def carried(data):
    """Bytes of each direction at the end, by its name."""
    found, pictured = Counter(), data["graph"]
    for _, _, nbytes, path in pictured["flights"]:
        for d in pictured["paths"][path]:
            found[pictured["ways"][d]] += nbytes
    return found


@pytest.mark.parametrize("machine, ranks", MACHINES, ids=NAMES)
def test_every_direction_carries_the_bytes_of_its_links(machine, ranks):
    timeline, view = played(machine, ranks)
    found, drawn = carried(view.data), machine.graph(ranks)
    links = {link["id"] for link in drawn["links"]}
    alone = {name: n for name, n in found.items() if name in links}
    assert alone == {name: timeline.link_bytes[name] for name in alone}
    if ranks <= 40:  # nothing is joined except the parallel wires of a leaf to the spine
        rest = sum(n for name, n in timeline.link_bytes.items() if name not in alone)
        assert sum(n for name, n in found.items() if name not in alone) == rest
    assert view.data["graph"]["most"] == max(found.values(), default=0)


@pytest.mark.parametrize("machine, ranks", MACHINES, ids=NAMES)
def test_a_path_goes_from_box_to_box(machine, ranks):
    pictured = played(machine, ranks)[1].data["graph"]
    for path in pictured["paths"]:
        ends = [pictured["wires"][d // 2]["ends"][::-1 if d % 2 else 1] for d in path]
        assert all(a[1] == b[0] for a, b in zip(ends, ends[1:]))
        assert all(pictured["nodes"][i]["rank"] for i in (ends[0][0], ends[-1][1]))


@pytest.mark.parametrize("machine, ranks", MACHINES, ids=NAMES)
def test_boxes_stand_apart_inside_the_picture_and_wires_end_at_them(machine, ranks):
    view = topology(machine, world_size=ranks)
    pictured = view.data["graph"]
    edges = [(n["x"] - n["w"] / 2, n["x"] + n["w"] / 2, n["y"] - n["h"] / 2, n["y"] + n["h"] / 2)
             for n in pictured["nodes"]]
    for i, (left, right, top, bottom) in enumerate(edges):
        assert 0 <= left < right <= 960 and 0 <= top < bottom <= pictured["height"]
        assert all(right < a or b < left or bottom < c or d < top
                   for a, b, c, d in edges[:i])
    for wire in pictured["wires"]:
        if wire["curve"]:
            for (x, y), box in zip((wire["curve"][:2], wire["curve"][4:]), wire["ends"]):
                left, right, top, bottom = edges[box]
                assert left - 0.1 <= x <= right + 0.1 and top - 0.1 <= y <= bottom + 0.1


@pytest.mark.parametrize("machine, ranks", MACHINES, ids=NAMES)
def test_data_travels_and_the_static_picture_is_an_svg_that_says_who_is_who(machine, ranks):
    view = played(machine, ranks)[1]
    assert json.loads(json.dumps(view.data, allow_nan=False)) == view.data
    root = ElementTree.fromstring(view.still())
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert view.data["summary"] in words
    shown = sum(bool(n["rank"]) for n in view.data["graph"]["nodes"])
    assert sum(bool(re.fullmatch(r"(rank |node |server )?\d+( \(.*\)|, .*)?", word))
               for word in words) >= shown


def test_the_text_form_names_the_busiest_link():
    def to_rank_0(group):
        if group.rank == 0:
            for rank in (1, 2):
                group.recv(torch.zeros(1000), rank)
        elif group.rank < 3:
            group.send(torch.zeros(1000), 0)

    view = topology(dgx_h100(), dry_run(to_rank_0, 8))
    assert repr(view) == ("DGX H100, 8 ranks: 2 messages, 8,000 B; busiest link rank 0 NVLink in, "
                          "8,000 B, step 0 of 3")
    assert view.data["steps"][1][1] == ("rank 1 sends 4,000 B to rank 0 over rank 1 NVLink out, "
                                        "rank 0 NVLink in")
    assert "busiest link rank 0 NVLink in, 8,000 B" in view.data["steps"][-1][1]


def test_messages_that_start_together_are_one_step():
    timeline, view = played(unit(), 4, ring, 8)
    steps = view.data["steps"]
    assert len(steps) == 2 + 6 and [t for t, _ in steps] == [0, 0, 8, 16, 24, 32, 40, 48]
    assert steps[1][1] == ("4 messages start, 32 B: ranks 0 to 1, 1 to 2, 2 to 3 and 1 more, over "
                           "8 links")


def test_a_machine_alone_has_no_steps_and_says_what_it_is():
    view = topology(pcie_server())
    assert (view.last, repr(view)) == (0, "PCIe server, 8 GPUs, 8 ranks: 20 links")
    assert view.data["graph"]["kinds"] == ["PCIe: 31 GB/s each way"]
    assert topology(variant(unit(), bandwidth=float("inf")), world_size=2).data["graph"][
        "kinds"] == ["port: free"]
    with pytest.raises(ValueError, match="world_size=None"):
        topology(unit())


def test_256_gpus_are_32_boxes_and_a_torus_keeps_its_chips():
    nodes = topology(dgx_h100(32)).data["graph"]["nodes"]
    assert [n["id"] for n in nodes if n["rank"]] == [f"node {k}" for k in range(32)]
    assert len(nodes) == 34 and "8 leaf switches" in nodes[-2]["names"][0]
    torus = topology(tpu_v4((16, 16))).data["graph"]
    assert len(torus["nodes"]) == 256 and len(torus["wires"]) == 512
    assert len(topology(nvl72()).data["graph"]["nodes"]) == 73


def test_what_stays_inside_a_box_is_counted_there():
    machine = pcie_server(4, servers=12)
    view = played(machine, 48, ring, 480)[1]
    inside = {name: n for name, n in carried(view.data).items() if name.startswith("inside")}
    one = 480 * 4 // 48 * 2 * 47  # bytes that a rank sends to the next
    # Three messages stay inside; one that leaves and one that comes pass wires inside, too.
    assert inside == {f"inside server {k}": 5 * one for k in range(12)}


def test_very_many_messages_are_shown_by_slots_of_time(monkeypatch):
    monkeypatch.setattr(graph, "MOST_FLIGHTS", 100)
    timeline, view = played(dgx_h100(2), 16, ring, 160)
    slots = view.data["graph"]
    assert slots["slots"] and len(slots["flights"]) <= 150
    monkeypatch.undo()
    every = topology(dgx_h100(2), timeline).data
    assert not every["graph"]["slots"] and carried(view.data) == carried(every)
    starts = [int(text.split()[0]) for _, text in view.data["steps"][1:-1]]
    assert sum(starts) == len(timeline.messages)


def test_a_run_is_replayed_and_another_machines_timeline_is_refused():
    run = run_ranks(ring, 2, 8)
    assert "2 ranks: 4 messages, 64 B" in repr(topology(unit(), run))
    with pytest.raises(ValueError, match="is of 'unit'; must be replayed on 'laptop'"):
        topology(laptop(), replay(run.trace, unit()))


def test_the_page_is_one_file(tmp_path):
    view = played(tpu_v4((2, 2)), 4)[1]
    view.save_html(tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    assert "class Graph" in page and ".ls-wire" in page and "http" not in page.replace(
        "http://www.w3.org", "")


def test_equal_pictures_have_equal_ids_and_others_do_not():
    again = topology(unit(), dry_run(everybody_to_everybody, 3, 64))
    ids = [played(unit(), 3)[1].data["id"], again.data["id"],
           played(unit(), 3, elements=65)[1].data["id"]]
    assert ids[0] == ids[1] != ids[2]
