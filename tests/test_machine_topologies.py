"""Servers, clusters and tori: routes, contention, levels, pictures, refusals."""

import json
import math
from itertools import permutations

import pytest

from course_lib.machine import (
    dgx_a100,
    dgx_b200,
    dgx_h100,
    laptop,
    nvl72,
    pcie_server,
    tpu_v4,
    tpu_v5p,
    two_laptops,
    unit,
)
from course_lib.trace import Event, Trace
from course_lib.virtual_time import replay

MACHINES = [
    unit(), laptop(), two_laptops(2), pcie_server(), pcie_server(6, servers=2), pcie_server(3),
    dgx_a100(2), dgx_b200(), dgx_h100(), dgx_h100(4, leaf_nodes=2), nvl72(), tpu_v4((4, 4)),
    tpu_v4((2, 3)), tpu_v4((2, 2, 1)), tpu_v5p((4, 4, 8)), tpu_v5p((1, 2, 4)),
]


def size(machine):
    return machine.max_ranks or 5


def pairs_of(machine, limit=600):
    pairs = list(permutations(range(size(machine)), 2))
    return pairs[::max(1, len(pairs) // limit)]


def messages(machine, *sent):
    """Replay of messages (source, destination, bytes), all posted at once: the Timeline."""
    world_size = size(machine)
    trace = Trace(world_size, {(r, "main"): [] for r in range(world_size)})
    for i, (src, dst, nbytes) in enumerate(sent):
        common = dict(nbytes=nbytes, channel=str(i), requests=(i,))
        trace.programs[src, "main"].append(Event("isend", peer=dst, **common))
        trace.programs[dst, "main"].append(Event("irecv", peer=src, **common))
    return replay(trace, machine)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_route_is_a_path_of_the_picture_at_the_speed_of_its_slowest_link(machine):
    links = {link["id"]: link for link in machine.graph(size(machine))["links"]}
    for src, dst in pairs_of(machine):
        route = machine.route(src, dst)
        assert route.out_port in machine.ports(src) and route.in_port in machine.ports(dst)
        assert sorted(route.path) == sorted(route.resources)
        here = f"rank {src}"
        for name in route.path:
            assert links[name]["a"] == here
            here = links[name]["b"]
        assert here == f"rank {dst}"
        assert route.bandwidth == min(links[name]["bandwidth"] for name in route.path)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_picture_is_whole_and_plain_data(machine):
    graph = machine.graph(size(machine))
    assert json.loads(json.dumps(graph, allow_nan=False)) == graph
    nodes, links = ([item["id"] for item in graph[kind]] for kind in ("nodes", "links"))
    assert len(set(nodes)) == len(nodes) and len(set(links)) == len(links)
    assert {link[end] for link in graph["links"] for end in "ab"} == set(nodes)
    assert [n["id"] for n in graph["nodes"] if n["level"] == 0] == [
        f"rank {r}" for r in range(size(machine))]
    places = {(n["x"], n["y"]) for n in graph["nodes"]}
    assert len(places) == len(nodes)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_links_of_a_replay_are_links_of_the_picture(machine):
    timeline = messages(machine, *[(s, d, 7) for s, d in pairs_of(machine, 20)])
    names = {link["id"] for link in machine.graph(size(machine))["links"]}
    assert set(timeline.link_bytes) <= names and timeline.link_bytes


@pytest.mark.parametrize("machine", [m for m in MACHINES if "TPU" not in m.name
                                     and "6 GPUs" not in m.name],  # groups of 4 do not tile 6
                         ids=lambda machine: machine.name)
def test_levels_are_what_routes_cost(machine):
    for src, dst in pairs_of(machine):
        level = next(lv for lv in machine.levels
                     if lv.ranks is None or src // lv.ranks == dst // lv.ranks)
        route = machine.route(src, dst)
        assert (route.latency, route.bandwidth) == (level.latency, level.bandwidth)


def test_figures():
    assert pcie_server().route(0, 1).seconds(31_000_000) == pytest.approx(5.7e-6 + 1e-3)
    assert pcie_server(8, 2).route(0, 8).seconds(25_000_000) == pytest.approx(9.6e-6 + 1e-3)
    assert dgx_a100(2).route(0, 1).bandwidth == 12 * dgx_a100(2).route(0, 8).bandwidth == 300e9
    assert nvl72(2).route(0, 71).bandwidth == 900e9
    assert nvl72(2).route(0, 72).bandwidth == 50e9
    assert [m.memory_bytes for m in (dgx_h100(), dgx_b200(), tpu_v4((2, 2)), tpu_v5p((2, 2)))] == [
        80e9, 192e9, 32e9, 96e9]
    assert two_laptops().route(0, 4).seconds(125_000_000) == pytest.approx(1.0 + 60e-6)
    assert unit().memory_bytes == math.inf


def test_gpus_of_a_pcie_switch_share_the_way_to_the_cpu():
    machine, n = pcie_server(), 31_000_000
    assert machine.route(1, 3).path == ("rank 1 PCIe out", "rank 3 PCIe in")
    assert machine.route(1, 6).path == ("rank 1 PCIe out", "server 0 PLX 0 to CPU",
                                        "server 0 CPU to PLX 1", "rank 6 PCIe in")
    once = machine.route(0, 4).seconds(n)
    apart = messages(machine, (0, 1, n), (2, 3, n), (4, 5, n), (6, 7, n))
    assert apart.makespan == pytest.approx(once)
    crossing = messages(machine, (0, 4, n), (1, 5, n), (2, 6, n), (3, 7, n))
    assert crossing.makespan == pytest.approx(4 * once)
    assert crossing.link_bytes["server 0 CPU to PLX 1"] == 4 * n
    back_and_forth = messages(machine, (0, 4, n), (5, 1, n))
    assert back_and_forth.makespan == pytest.approx(once)


def test_a_server_has_one_adapter():
    machine, n = pcie_server(8, servers=2), 25_000_000
    assert machine.route(5, 8).path == (
        "rank 5 PCIe out", "server 0 PLX 1 to CPU", "server 0 CPU to PLX 0",
        "server 0 PLX 0 to HCA", "server 0 HCA out", "server 1 HCA in", "server 1 HCA to PLX 0",
        "rank 8 PCIe in")
    once = machine.route(0, 8).seconds(n)
    assert messages(machine, *[(g, 8 + g, n) for g in range(8)]).makespan == pytest.approx(8 * once)
    rails = dgx_h100(2)
    assert messages(rails, *[(g, 8 + g, n) for g in range(8)]).makespan == pytest.approx(
        rails.route(0, 8).seconds(n))


def test_laptops_share_the_cable():
    machine, n = two_laptops(2), 125_000
    once = machine.route(0, 2).seconds(n)
    assert messages(machine, (0, 2, n), (1, 3, n)).makespan == pytest.approx(2 * once)
    assert messages(machine, (0, 2, n), (3, 1, n)).makespan == pytest.approx(once)
    assert messages(machine, (0, 1, n), (2, 3, n)).makespan < once / 5


def test_leaf_and_spine():
    machine = dgx_h100(4, leaf_nodes=2)  # ranks 0..15 under one set of leaves, 16..31 the next
    assert machine.route(3, 11).path == ("rank 3 NIC 3 out", "rank 11 NIC 3 in")
    assert machine.route(3, 27).path == ("rank 3 NIC 3 out", "unit 0 leaf 3 up 0",
                                         "unit 1 leaf 3 down 1", "rank 27 NIC 3 in")
    assert [level.ranks for level in machine.levels] == [8, 16, 32]
    nodes = machine.graph()["nodes"]
    kinds = [n["kind"] for n in nodes]
    assert [kinds.count(k) for k in ("gpu", "nvswitch", "leaf", "spine")] == [32, 4, 16, 1]
    assert [level.ranks for level in dgx_h100(64).levels] == [8, 256, 512]
    assert [level.ranks for level in dgx_h100(32).levels] == [8, 256]


def test_full_bisection_means_that_any_permutation_runs_at_once():
    machine, n = dgx_h100(4, leaf_nodes=2), 50_000_000
    shifted = messages(machine, *[(r, (r + 13) % 32, n) for r in range(32)])
    assert shifted.makespan == pytest.approx(machine.route(0, 13).seconds(n))


def test_torus_routes_axis_by_axis_the_shorter_way():
    machine = tpu_v4((4, 8))  # rank = 8 x + y
    assert machine.route(0, 1).path == ("rank 0 y+",)
    assert machine.route(0, 1).resources == ("rank 0 y+",)
    assert machine.route(0, 7).path == ("rank 0 y-",)
    assert machine.route(0, 24).path == ("rank 0 x-",)
    assert machine.route(0, 18).path == ("rank 0 x+", "rank 8 x+", "rank 16 y+", "rank 17 y+")
    assert machine.route(0, 18).seconds(45_000) == pytest.approx(4e-6 + 1e-6)
    assert len(machine.route(0, 4).path) == 4 and machine.route(0, 4).path[0] == "rank 0 y+"
    assert machine.ports(9)[:4] == ("rank 9 x+", "rank 9 x-", "rank 9 y+", "rank 9 y-")
    assert set(machine.ports(9)[4:]) == {"rank 17 x-", "rank 1 x+", "rank 10 y-", "rank 8 y+"}


@pytest.mark.parametrize("shape", [(4, 4), (4, 8), (2, 3), (4, 6), (6, 6), (4, 4, 4), (2, 4, 4),
                                   (8, 4, 4)])
def test_torus_hops_are_distances(shape):
    machine = tpu_v5p(shape)
    closed = all(n % 4 == 0 for n in shape)
    assert set(machine.wraps) == {closed}
    places = [tuple(i // math.prod(shape[a + 1:]) % n for a, n in enumerate(shape))
              for i in range(math.prod(shape))]
    for src, dst in pairs_of(machine, 300):
        hops = sum(min(abs(a - b), n - abs(a - b) if closed else n)
                   for a, b, n in zip(places[src], places[dst], shape))
        route = machine.route(src, dst)
        assert len(route.path) == hops and route.latency == pytest.approx(hops * 1e-6)
    kinds = [link["kind"] for link in machine.graph()["links"]]
    per_axis = [2 * (n if closed else n - 1) * math.prod(shape) // n for n in shape]
    assert len(kinds) == sum(per_axis)
    assert kinds.count("ICI wrap") == (sum(2 * math.prod(shape) // n for n in shape) if closed
                                       else 0)


def test_torus_links_are_shared_and_all_ports_work_at_once():
    machine, n = tpu_v4((4, 4)), 45_000_000
    hop = machine.route(0, 1).seconds(n)
    around = messages(machine, (0, 1, n), (0, 3, n), (0, 4, n), (0, 12, n), (1, 0, n))
    assert around.makespan == pytest.approx(hop)
    line = messages(machine, (0, 2, n), (1, 2, n))  # both need the wire from 1 to 2
    assert line.makespan == pytest.approx(hop + machine.route(0, 2).seconds(n))
    assert line.link_bytes["rank 1 y+"] == 2 * n


@pytest.mark.parametrize("call, message", [
    (lambda: pcie_server(9), "gpus=9: must be at most 8, the GPUs that one server has room for"),
    (lambda: pcie_server(0), "gpus=0: must be an integer of at least 1"),
    (lambda: pcie_server(8, servers=1.5), "servers=1.5: must be an integer of at least 1"),
    (lambda: pcie_server(4).check_world_size(9), "has 4 GPUs, one a rank; servers=3 has enough"),
    (lambda: nvl72(0), "racks=0: must be an integer of at least 1"),
    (lambda: nvl72().check_world_size(73), "GB200 NVL72 has 72 GPUs, one a rank; racks=2 has"),
    (lambda: dgx_a100("2"), "nodes=2: must be an integer"),
    (lambda: two_laptops(0), "ranks_each=0: must be an integer of at least 1"),
    (lambda: two_laptops(2).check_world_size(5), "world_size=5: two laptops on Ethernet has 4"),
    (lambda: tpu_v4(16), "shape=(16,): must be two or three integers of at least 1"),
    (lambda: tpu_v4((4, 0)), "shape=(4, 0): must be two or three integers of at least 1"),
    (lambda: tpu_v4((1, 1)), "shape=(1, 1): must have at least two chips"),
    (lambda: tpu_v4((4, 4, 20)), "shape=(4, 4, 20): must fit into a pod of TPU v4, 16x16x16"),
    (lambda: tpu_v5p((24, 24, 4)), "must fit into a pod of TPU v5p, 16x20x28"),
    (lambda: tpu_v5p((4, 4)).check_world_size(8), "world_size=8: TPU v5p 4x4 has 16 chips, and"),
    (lambda: tpu_v5p((4, 4)).route(0, 16), "dst=16: must be at least 0, below 16 on TPU v5p 4x4"),
    (lambda: unit().graph(), "world_size=None: unit has any number of ranks, say how many"),
    (lambda: dgx_h100().graph(9), "world_size=9: DGX H100 has 8 GPUs"),
])
def test_refused(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)


def test_a_replay_needs_a_rank_for_every_chip():
    trace = Trace(8, {(r, "main"): [] for r in range(8)})
    with pytest.raises(ValueError, match="world_size=8: TPU v4 4x4 has 16 chips"):
        replay(trace, tpu_v4((4, 4)))
