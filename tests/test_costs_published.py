"""Forms of collectives that the course does not run, against what their sources print."""

import json
from pathlib import Path

import pytest

from course_lib import costs

PRINTED = json.loads(
    (Path(__file__).parent / "reference" / "collective_forms.json").read_text())
NCCL, BOOK = PRINTED["nccl"], PRINTED["scaling_book"]


@pytest.mark.parametrize("row", PRINTED["mpich"], ids=lambda row: row["form"])
@pytest.mark.parametrize("p", [1, 2, 4, 64])
def test_forms_of_mpich(row, p):
    names = dict(n=1e6, p=p, a=3e-6, b=1 / 50e9, g=1 / 900e9, lg=p.bit_length() - 1)
    more = {"gamma": names["g"]} if row["added"] else {}
    got = getattr(costs, row["form"])(names["n"], p, names["a"], 1 / names["b"], **more)
    assert got == pytest.approx(eval(row["cost"], names), rel=1e-12)  # a row of our own file


@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
@pytest.mark.parametrize("gpus, nodes", [(1, 1), (8, 1), (8, 2), (8, 32), (1, 4)])
def test_latencies_of_nccl(protocol, gpus, nodes):
    base, intra, inter = NCCL["rows"]
    names = dict(p=gpus * nodes, k=nodes, lgk=nodes.bit_length() - 1)
    for kind, form in (("ring", costs.nccl_ring_latency_seconds),
                       ("tree", costs.nccl_tree_latency_seconds)):
        key = f"{kind}_{protocol}" + ("_256kB" if (kind, protocol) == ("tree", "Simple") else "")
        hops = dict(intra=intra[key], inter=inter[key])
        assert form(gpus, nodes, hops["intra"], hops["inter"], base[key]) == pytest.approx(
            base[key] + eval(NCCL[kind], names | hops))


def test_an_all_gather_of_the_scaling_book_on_eight_h100():
    n = 2 * 4096 * 65536
    milliseconds = 1e3 * costs.fat_tree_all_gather_seconds(n, BOOK["levels"][:1])
    assert f"{milliseconds:.2f}" == BOOK["all_gather_bf16_4096_65536_on_8_H100_ms"]
    slowest = 31 / 32 / 400e9  # out of the nodes
    assert costs.fat_tree_all_gather_seconds(n, BOOK["levels"]) == pytest.approx(n * slowest)
    assert costs.fat_tree_all_gather_seconds(n, []) == 0


def test_tpus_gather_by_hops_or_by_bytes():
    both = 1.8e11  # a v5p link, both directions
    assert costs.tpu_all_gather_seconds(both, (16,), both) == 1.0
    assert costs.tpu_all_gather_seconds(both, (16, 1, 4), both) == 0.5
    assert costs.tpu_all_gather_seconds(1.0, (16, 20), both) == pytest.approx(18e-6)
    assert costs.tpu_all_gather_seconds(both, (1,), both) == 0.0
    for X in (4, 8, 16):  # an all-to-all of as much per chip is bound by a quarter
        all_gather = costs.tpu_all_gather_seconds(1e9 * X, (X,), both, latency=0.0)
        assert costs.torus_all_to_all_bound_seconds(1e9, (X,), both / 2) == pytest.approx(
            all_gather / 4)


def test_all_to_all_through_switches():
    assert costs.switched_all_to_all_seconds(64.0, 8, 1.0) == 7.0
    assert costs.switched_all_to_all_seconds(64.0, 8, 1.0, chosen=2) == 7.0 / 4
    assert costs.switched_all_to_all_seconds(64.0, 8, 1.0, chosen=16) == 7.0
    assert costs.switched_all_to_all_seconds(64.0, 1, 1.0) == 0.0
    each = 64.0 / 8  # as pairwise exchange of what a GPU has, without latency
    assert costs.switched_all_to_all_seconds(64.0, 8, 1.0) == costs.all_to_all_seconds(
        each, 8, 0.0, 1.0)


@pytest.mark.parametrize("call, message", [
    (lambda: costs.halving_reduce_scatter_seconds(1, 6, 0, 1), "world_size=6: must be a power of"),
    (lambda: costs.rabenseifner_reduce_seconds(1, 3, 0, 1), "world_size=3: must be a power of two"),
    (lambda: costs.tree_scatter_seconds(1, 0, 0, 1), "world_size=0: must be an integer"),
    (lambda: costs.nccl_ring_latency_seconds(8, 0, 1, 1), "nodes=0: must be an integer"),
    (lambda: costs.nccl_tree_latency_seconds(8, 1, -1, 1), "latency=-1: must be at least 0"),
    (lambda: costs.tpu_all_gather_seconds(1, (4, 0), 1), "must be integers of at least 1"),
    (lambda: costs.switched_all_to_all_seconds(1, 8, 1, chosen=0), "chosen=0: must be an integer"),
    (lambda: costs.fat_tree_all_gather_seconds(1, [(0, 1)]), "degree=0: must be an integer of"),
    (lambda: costs.fat_tree_all_gather_seconds(1, [(8, 0)]), "bandwidth=0: must be above 0"),
])
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
