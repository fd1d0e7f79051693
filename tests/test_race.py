"""The race of all-reduces: its controls show what a replay says, in at most two messages."""

import pytest

from course_lib import costs
from course_lib.machine import laptop
from course_lib.viz.race import race_all_reduce
from course_lib.viz.racers import ALGORITHMS, MACHINES, RACERS, raced


def test_a_racer_takes_its_closed_form():
    rates = dict(latency=laptop().latency, bandwidth=laptop().bandwidth)
    for name in ("naive", "tree", "ring", "recursive_doubling", "rabenseifner"):
        form = getattr(costs, f"{name}_all_reduce_seconds")(2**15, 8, **rates)
        assert raced(name, "laptop", 8, 2**15).makespan == pytest.approx(form)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_algorithm_runs_on_every_machine(machine):
    for name in ALGORITHMS:
        assert raced(name, machine, 4, 2**12).makespan > 0


def test_the_race_has_a_panel_for_each_racer_on_one_clock():
    race = race_all_reduce(ranks=8, size=2**16)
    panels = race.view.data["panels"]
    times = {name: raced(name, "DGX H100", 8, 2**16).makespan for name in RACERS}
    assert [panel["title"].partition(":")[0] for panel in panels] == list(RACERS)
    assert race.view.data["clock"]["end"] == max(times.values())
    assert all(f"{name} {times[name] * 1e6:.4f} µs" in repr(race) for name in RACERS)


def test_a_control_changes_the_view_in_place_by_two_messages():
    race, sent = race_all_reduce(ranks=4, size=2**12), []
    shown, name = race.view, race.view.data["id"]
    race.view.observe(lambda change: sent.append("view"), "data")
    race.load.observe(lambda change: sent.append("load"), "value")
    race.algorithm.value = "ring"
    assert sent == ["view", "load"] and race.view is shown and shown.data["id"] == name
    assert len(shown.data["panels"]) == 1 and len(shown.data["panels"][0]["rows"]) == 4
    assert not shown.error and repr(race).count("busy") == 6


def test_the_busiest_link_of_a_ring_over_two_nodes_is_a_nic():
    race = race_all_reduce("ring", ranks=16)
    name, link, nbytes, busy = race.busiest()[0]
    assert "NIC" in link and nbytes == costs.ring_all_reduce_bytes(2**20, 16) and busy > 0.99


@pytest.mark.parametrize(
    "wrong", [{"algorithm": "best"}, {"machine": "phone"}, {"ranks": 5}, {"size": 8}]
)
def test_a_wrong_argument_is_named(wrong):
    (name, value), = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value!r}: must be"):
        race_all_reduce(**wrong)
