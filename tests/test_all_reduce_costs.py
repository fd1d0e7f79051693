"""Every all-reduce, dry-run and replayed on a uniform machine, is its closed form; so is the size
at which two of them cost the same.
"""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from course_lib import collectives, costs, dry_run, replay
from course_lib.machine import laptop, unit

RATES = dict(latency=0.25, bandwidth=2.0)
ALGORITHMS = ("naive", "tree", "ring", "recursive_doubling", "rabenseifner")


def close(value):
    return pytest.approx(value, rel=1e-12)


def replayed(function, world_size, nbytes, machine, *args):
    """Seconds of function(x, group, *args) on x of `nbytes` bytes in fp32."""
    trace = dry_run(lambda group: function(torch.zeros(nbytes // 4), group, *args), world_size,
                    record="calls")
    return replay(trace, machine).makespan


def seconds_of(algorithm):
    return getattr(costs, f"{algorithm}_all_reduce_seconds")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 32])
def test_all_reduce_is_its_closed_form(algorithm, world_size):
    W, gamma = world_size, 0.05  # seconds per byte, four of them an element
    n = 4 * W * 32
    machine = replace(unit(**RATES), gamma=4 * gamma)
    function = getattr(collectives, f"{algorithm}_all_reduce")
    assert replayed(function, W, n, machine) == close(
        seconds_of(algorithm)(n, W, **RATES, gamma=gamma))


@pytest.mark.parametrize("shape", [(2, 2), (2, 4), (4, 3), (5, 5), (2, 3, 4)])
def test_torus_all_reduce_is_its_closed_form_on_any_uniform_machine(shape):
    W, gamma = math.prod(shape), 0.05
    n = 4 * W * 6
    machine = replace(unit(**RATES), gamma=4 * gamma)
    form = costs.torus_all_reduce_seconds(n, shape, **RATES, gamma=gamma)
    assert replayed(collectives.torus_all_reduce, W, n, machine, shape) == close(form)


@pytest.mark.parametrize("world_size", [2, 3, 5, 8, 13])
def test_the_others_are_their_closed_forms(world_size):
    W = world_size
    n = 4 * W * 6
    machine = replace(unit(**RATES), gamma=4 * 0.05)

    def parts(function):
        return lambda x, group: function(list(x.tensor_split(W)), group)

    def own_part(x, group):
        collectives.ring_all_gather(x[:x.numel() // W], group)

    for function, form in (
            (collectives.tree_broadcast, costs.tree_broadcast_seconds(n, W, **RATES)),
            (collectives.tree_reduce, costs.tree_reduce_seconds(n, W, **RATES, gamma=0.05)),
            (parts(collectives.ring_reduce_scatter),
             costs.reduce_scatter_seconds(n, W, **RATES, gamma=0.05)),
            (own_part, costs.all_gather_seconds(n, W, **RATES)),
            (parts(collectives.pairwise_all_to_all), costs.all_to_all_seconds(n, W, **RATES))):
        assert replayed(function, W, n, machine) == close(form)


@pytest.mark.parametrize("small, large, world_size", [
    ("tree", "ring", 4), ("tree", "ring", 8), ("recursive_doubling", "ring", 8),
    ("recursive_doubling", "rabenseifner", 8), ("rabenseifner", "ring", 6),
])
def test_crossover_by_replay_is_the_predicted_one(small, large, world_size):
    W = world_size
    machine = replace(unit(latency=1000.0), gamma=0.0)

    def large_wins(steps):
        n = 4 * W * steps
        times = [replayed(getattr(collectives, f"{name}_all_reduce"), W, n, machine)
                 for name in (small, large)]
        return times[1] <= times[0]

    low, high = 1, 512  # in steps of 4 W bytes
    assert not large_wins(low) and large_wins(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if large_wins(middle) else (middle, high)
    predicted = costs.crossover_bytes(*(
        partial(seconds_of(name), world_size=W, latency=1000.0, bandwidth=1.0)
        for name in (small, large)))
    print(f"{small} / {large}, W={W}: predicted {predicted:.1f} bytes, "
          f"replayed in {4 * W * low}..{4 * W * high}")
    assert 4 * W * low < predicted <= 4 * W * high * (1 + 1e-9)


def test_crossover_on_the_laptop():
    """Tree against ring at 8 ranks of the laptop: by hand, 6 and 14 latencies, 6 and 1.75 n."""
    machine = laptop()
    rates = dict(world_size=8, latency=machine.latency, bandwidth=machine.bandwidth)
    predicted = costs.crossover_bytes(lambda n: costs.tree_all_reduce_seconds(n, **rates),
                                      lambda n: costs.ring_all_reduce_seconds(n, **rates))
    assert predicted == pytest.approx(8 * 60e-6 * 2e9 / 4.25)
    below, above = int(predicted * 0.9) // 32 * 32, int(predicted * 1.1) // 32 * 32
    free = replace(machine, gamma=0.0)
    for n, ring_first in ((below, False), (above, True)):
        ring, tree = (replayed(f, 8, n, free) for f in (collectives.ring_all_reduce,
                                                        collectives.tree_all_reduce))
        assert (ring < tree) is ring_first
