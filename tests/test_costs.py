"""The closed forms: published values, limits, refusals. test_virtual_time.py replays them."""

import json
import math
from decimal import Decimal
from pathlib import Path

import pytest

from course_lib import costs

ZERO = json.loads((Path(__file__).parent / "reference" / "zero_memory.json").read_text())


@pytest.mark.parametrize("row", ZERO["rows"], ids=lambda row: f"{row['psi']:g}-{row['world_size']}")
def test_zero_memory_is_the_published_table(row):
    for stage, printed in enumerate(row["printed"], start=1):
        if printed is not None:
            half_a_digit = 0.5 * 10.0 ** Decimal(printed).as_tuple().exponent
            gigabytes = costs.zero_memory_bytes(row["psi"], row["world_size"], stage) / 1e9
            assert abs(gigabytes - float(printed)) <= half_a_digit * (1 + 1e-9)


def test_zero_memory_by_its_parts():
    psi, W = 1000, 4
    assert [costs.zero_memory_bytes(psi, W, stage) for stage in range(4)] == [
        16 * psi, 4 * psi + 12 * psi / W, 2 * psi + 14 * psi / W, 16 * psi / W]
    assert {costs.zero_memory_bytes(psi, 1, stage) for stage in range(4)} == {16 * psi}


@pytest.mark.parametrize("world_size", [1, 2, 3, 5, 8])
def test_ring_bytes_are_what_ranks_send_also_when_ragged(world_size):
    W = world_size
    for elements in (0, 1, W - 1, W, 13, 8 * W):
        chunk = [elements // W + (c < elements % W) for c in range(W)]
        reduce_scatter = [sum(chunk[(r - s - 1) % W] for s in range(W - 1)) for r in range(W)]
        all_gather = [sum(chunk[(r - s) % W] for s in range(W - 1)) for r in range(W)]
        sent = [4 * (a + b) for a, b in zip(reduce_scatter, all_gather, strict=True)]
        expected = costs.ring_all_reduce_bytes(4 * elements, W)
        assert sum(sent) == pytest.approx(W * expected, rel=1e-15)
        assert sent == [4 * (2 * elements - chunk[r] - chunk[(r + 1) % W]) * (W > 1)
                        for r in range(W)]
        if elements % W == 0:
            assert set(sent) == {expected}


def test_one_rank_costs_nothing():
    rates = dict(latency=1.0, bandwidth=1.0)
    assert costs.ring_all_reduce_bytes(100, 1) == 0
    assert costs.ring_all_reduce_seconds(100, 1, **rates) == 0
    assert costs.naive_all_reduce_bytes(100, 1, rank=0) == 0
    assert costs.naive_all_reduce_seconds(100, 1, **rates) == 0
    assert costs.broadcast_bytes(100, 1) == costs.broadcast_seconds(100, 1, **rates) == 0
    assert costs.barrier_steps(1) == costs.ring_all_reduce_steps(1) == 0


def test_naive_bytes_of_root_and_others():
    assert [costs.naive_all_reduce_bytes(10, 4, rank) for rank in range(4)] == [30, 10, 10, 10]
    assert [costs.naive_all_reduce_bytes(10, 4, rank, root=2) for rank in range(4)] == [
        10, 10, 30, 10]


def test_steps():
    assert [costs.barrier_steps(W) for W in (2, 3, 4, 5, 8, 9)] == [1, 2, 2, 3, 3, 4]
    assert [costs.ring_all_reduce_steps(W) for W in (2, 4, 8)] == [2, 6, 14]


def test_bus_bandwidth_of_a_perfect_ring_is_the_wire():
    for W in (2, 3, 8, 64):
        seconds = costs.ring_all_reduce_seconds(1e9, W, latency=0.0, bandwidth=450e9)
        assert costs.bus_bandwidth("all_reduce", 1e9, W, seconds) == pytest.approx(450e9, rel=1e-12)
    assert costs.bus_bandwidth("all_gather", 8.0, 4, 2.0) == 3.0
    assert costs.bus_bandwidth("broadcast", 8.0, 4, 2.0) == 4.0


POWERS = [2, 4, 8, 64, 256, 1024]


@pytest.mark.parametrize("p", POWERS)
def test_forms_of_mpich_for_powers_of_two(p):
    """As the comments in MPICH print them: a latency, b seconds per byte, g per byte added."""
    n, a, b, g, lg = 1e6, 3e-6, 1 / 50e9, 1 / 900e9, p.bit_length() - 1
    rates = dict(latency=a, bandwidth=1 / b)
    share = n * (p - 1) / p
    for got, printed in (
            (costs.rabenseifner_all_reduce_seconds(n, p, **rates, gamma=g),
             2 * lg * a + 2 * share * b + share * g),
            (costs.reduce_scatter_seconds(n, p, **rates), (p - 1) * a + share * b),
            (costs.all_gather_seconds(n, p, **rates), (p - 1) * a + share * b),
            (costs.tree_broadcast_seconds(n, p, **rates), lg * a + n * lg * b),
            (costs.all_to_all_seconds(n, p, **rates), (p - 1) * a + share * b),
            (costs.recursive_doubling_all_reduce_seconds(n, p, **rates, gamma=g),
             lg * (a + n * b + n * g)),
            (costs.torus_all_reduce_seconds(n, (2, p // 2), **rates),
             (2 + 2 * (p // 2 - 1)) * a + 2 * n * (1 / 2 + (p // 2 - 1) / p) * b)):
        assert got == pytest.approx(printed, rel=1e-12)


@pytest.mark.parametrize("p", [3, 5, 6, 7, 12, 100, 1000])
def test_rabenseifner_between_powers_is_just_below_the_printed_form(p):
    n, a, b, g, lg = 1e6, 3e-6, 1 / 50e9, 1 / 900e9, p.bit_length() - 1
    ours = costs.rabenseifner_all_reduce_seconds(n, p, a, 1 / b, gamma=g)
    printed = ((2 * lg + 2) * a + (2 * (p - 1) / p + 2) * n * b + n * (1 + (p - 1) / p) * g)
    assert printed - (1 / 2**lg - 1 / p) * n * (2 * b + g) == pytest.approx(ours, rel=1e-12)
    assert ours < printed
    assert printed == pytest.approx(
        costs.rabenseifner_all_reduce_seconds(n, p, a, 1 / b, gamma=g, printed=True), rel=1e-12)


def test_rabenseifner_on_three_ranks_in_both_forms():
    assert costs.rabenseifner_all_reduce_seconds(3, 3, 0, 1) == 9
    assert costs.rabenseifner_all_reduce_seconds(3, 3, 0, 1, printed=True) == 10


def test_hierarchical_moves_what_the_reference_says():
    """NVLink 2 (g - 1) / g P, NIC 2 (k - 1) / k P / g per GPU."""
    inside, between = costs.hierarchical_all_reduce_bytes(16e9, 8, 32)
    assert (inside, between) == (2 * 7 / 8 * 16e9, 2 * 31 / 32 * 16e9 / 8)
    free = dict(latency=0.0, outer_latency=0.0)
    assert costs.hierarchical_all_reduce_seconds(
        16e9, 8, 32, bandwidth=450e9, outer_bandwidth=50e9, **free) == pytest.approx(
            inside / 450e9 + between / 50e9)
    alike = dict(latency=2.0, bandwidth=3.0, outer_latency=2.0, outer_bandwidth=3.0)
    assert costs.hierarchical_all_reduce_seconds(640, 8, 4, **alike) == pytest.approx(
        costs.torus_all_reduce_seconds(640, (4, 8), 2.0, 3.0))


@pytest.mark.parametrize("shape", [(2, 3), (8, 8), (4, 16), (4, 4, 4), (32, 32), (8, 8, 16)])
def test_torus_moves_as_much_as_one_ring(shape):
    assert costs.torus_all_reduce_bytes(1e6, shape) == pytest.approx(
        costs.ring_all_reduce_bytes(1e6, math.prod(shape)))


def test_all_to_all_on_a_ring_is_a_quarter_of_the_all_gather():
    """Scaling book: bound of the all-to-all against V / W, W the sum of both directions."""
    for X in (4, 8, 16):
        n, one_way = 1e6, 90e9
        all_gather = n * X / (2 * one_way)
        assert costs.torus_all_to_all_bound_seconds(n, (X,), one_way) == pytest.approx(
            all_gather / 4)


def test_crossover():
    def line(start, slope):
        return lambda n: start + slope * n

    assert costs.crossover_bytes(line(1.0, 2.0), line(7.0, 0.5)) == pytest.approx(4.0)
    assert costs.crossover_bytes(line(1.0, 2.0), line(1.0, 2.0)) == 0.0
    assert costs.crossover_bytes(line(1.0, 2.0), line(0.0, 1.0)) == 0.0
    assert costs.crossover_bytes(line(1.0, 2.0), line(2.0, 2.0)) == math.inf
    with pytest.raises(ValueError, match="exchange the two"):
        costs.crossover_bytes(line(7.0, 0.5), line(1.0, 2.0))


@pytest.mark.parametrize("call, message", [
    (lambda: costs.ring_all_reduce_bytes(4, 0), "world_size=0: must be an integer of at least 1"),
    (lambda: costs.ring_all_reduce_bytes(4, 2.0), "world_size=2.0: must be an integer"),
    (lambda: costs.ring_all_reduce_bytes(-1, 2), "n=-1: must be at least 0"),
    (lambda: costs.broadcast_seconds(1, 2, -1.0, 1.0), "latency=-1.0: must be at least 0"),
    (lambda: costs.broadcast_seconds(1, 2, 0.0, 0.0), "bandwidth=0.0: must be above 0"),
    (lambda: costs.ring_all_reduce_seconds(1, 2, 0.0, 1.0, segments=0), "segments=0: must be"),
    (lambda: costs.ring_all_reduce_seconds(1, 2, 0.0, 1.0, gamma=-1), "gamma=-1: must be"),
    (lambda: costs.naive_all_reduce_bytes(1, 2, rank=2), "rank=2: must be in 0..1"),
    (lambda: costs.zero_memory_bytes(1, 2, 4), "stage=4: must be 0, 1, 2 or 3"),
    (lambda: costs.zero_memory_bytes(-1, 2, 0), "psi=-1: must be at least 0"),
    (lambda: costs.hierarchical_all_reduce_bytes(1, 0, 2), "inner=0: must be an integer of at"),
    (lambda: costs.hierarchical_all_reduce_seconds(1, 2, 2, 0, 1, 0, 0),
     "outer_bandwidth=0: must be above 0"),
    (lambda: costs.torus_all_reduce_bytes(1, (2, 0)), "shape=(2, 0): must be integers of at"),
    (lambda: costs.rail_rings_all_reduce_seconds(1, 8, 1.5, 0, 1, 0, 1), "nodes=1.5: must be an"),
    (lambda: costs.ring_all_reduce_bytes(4, True), "world_size=True: must be an integer"),
    (lambda: costs.torus_all_reduce_bytes(1, (2, True)), "shape=(2, True): must be integers"),
    (lambda: costs.tree_all_reduce_seconds(1, 2, 0, 0), "bandwidth=0: must be above 0"),
    (lambda: costs.bus_bandwidth("gossip", 1, 2, 1.0), "op='gossip': must be one of all_reduce"),
    (lambda: costs.bus_bandwidth("reduce", 1, 2, 0.0), "seconds=0.0: must be above 0"),
])
def test_refused(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
