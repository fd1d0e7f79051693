"""Machine models: routes, ports, computation, and what they refuse."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from course_lib.machine import Machine, dgx_h100, laptop, unit


def test_unit_and_laptop_have_one_port_a_direction():
    for machine in (unit(), laptop()):
        route = machine.route(0, 5)
        assert route.resources == ("rank 0 out", "rank 5 in")
        assert machine.ports(0) == ("rank 0 out", "rank 0 in")
        assert machine.route(0, 3).out_port == route.out_port != machine.route(5, 0).in_port


def test_figures():
    assert unit().route(0, 1).seconds(7) == 7.0
    assert unit(latency=2.0, bandwidth=0.5).route(0, 1).seconds(7) == 16.0
    assert laptop().route(0, 1).seconds(2_000_000) == pytest.approx(60e-6 + 1e-3)
    assert dgx_h100().route(0, 1).seconds(450_000_000) == pytest.approx(3.4e-6 + 1e-3)
    assert dgx_h100(2).route(0, 8).seconds(50_000_000) == pytest.approx(9.6e-6 + 1e-3)


def test_compute_is_the_longer_of_arithmetic_and_memory():
    h100 = dgx_h100()
    assert h100.compute_seconds(flops=989 * 10**12) == pytest.approx(1.0)
    assert h100.compute_seconds(flops=1, nbytes=3350 * 10**9) == pytest.approx(1.0)
    assert unit().compute_seconds(flops=5, nbytes=10**9) == 5.0


def test_additions_are_free_on_unit_and_charged_by_gamma():
    assert unit().compute_seconds(flops=5, label="add") == 0.0
    assert replace(unit(), gamma=0.25).compute_seconds(flops=8, label="add") == 2.0
    adds = dict(flops=10, nbytes=120)
    assert laptop().compute_seconds(**adds, label="add") == laptop().compute_seconds(**adds) > 0


def test_dgx_uses_nvlink_inside_a_node_and_one_nic_per_gpu_between():
    machine = dgx_h100(nodes=2)
    assert machine.name == "2 x DGX H100" and dgx_h100().name == "DGX H100"
    assert machine.route(0, 7).resources == ("rank 0 NVLink out", "rank 7 NVLink in")
    assert machine.route(3, 11).resources == ("rank 3 NIC 3 out", "rank 11 NIC 3 in")
    assert machine.route(3, 12).path == (
        "rank 3 NIC 3 out", "unit 0 leaf 3 up 0", "unit 0 leaf 4 down 1", "rank 12 NIC 4 in")
    names = [name for rank in range(16) for name in machine.ports(rank)]
    assert len(set(names)) == 64
    for src in range(16):
        for dst in set(range(16)) - {src}:
            route = machine.route(src, dst)
            assert route.out_port in machine.ports(src) and route.in_port in machine.ports(dst)


@pytest.mark.parametrize("call, message", [
    (lambda: dgx_h100(0), "nodes=0: must be an integer of at least 1"),
    (lambda: dgx_h100(1.5), "nodes=1.5: must be an integer"),
    (lambda: dgx_h100().route(0, 8), "dst=8: must be at least 0, below 8 on DGX H100"),
    (lambda: dgx_h100().route(-1, 0), "src=-1: must be at least 0, below 8"),
    (lambda: dgx_h100().check_world_size(17), "nodes=3 has enough"),
    (lambda: dgx_h100().check_world_size(9), "world_size=9: DGX H100 has 8 GPUs, one a rank"),
    (lambda: replace(unit(), max_ranks=4).check_world_size(5), "world_size=5: unit has 4 ranks"),
    (lambda: unit().route(3, 3), "dst=3: a rank sends no message to itself"),
    (lambda: unit(latency=-1.0), "latency=-1.0: must be at least 0"),
    (lambda: unit(latency=math.inf), "latency=inf: must be at least 0 and finite"),
    (lambda: unit(bandwidth=0.0), "bandwidth=0.0: must be above 0"),
    (lambda: unit(bandwidth=math.nan), "bandwidth=nan: must be above 0"),
    (lambda: replace(unit(), gamma=-1.0), "gamma=-1.0: must be at least 0"),
    (lambda: dgx_h100(True), "nodes=True: must be an integer"),
    (lambda: dgx_h100(2, leaf_nodes=0), "leaf_nodes=0: must be an integer of at least 1"),
    (lambda: replace(unit(), memory_bytes=0), "memory_bytes=0: must be above 0"),
    (lambda: replace(dgx_h100(2), nic_bandwidth=0.0), "nic_bandwidth=0.0: must be above 0"),
])
def test_refused(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)


def test_free_transfers_are_allowed():
    assert Machine("free", 0.0, math.inf, 1.0, 1.0).route(0, 1).seconds(10**12) == 0.0


def test_replay_needs_no_torch():
    code = ("import sys; sys.modules['torch'] = None\n"
            "import types; sys.modules['course_lib'] = p = types.ModuleType('course_lib')\n"
            "p.__path__ = [{path!r}]\n"
            "import course_lib.machine, course_lib.costs, course_lib.virtual_time")
    import course_lib.machine
    folder = str(Path(course_lib.machine.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", code.format(path=folder)], check=True, timeout=60)
