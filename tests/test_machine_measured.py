"""The fit of latency and bandwidth, and the laptop at hand."""

import pytest

from course_lib.machine import fit_latency_bandwidth, measure_laptop
from course_lib.machine.measured import SIZES


def test_fit_finds_the_line_that_the_times_lie_on():
    seconds = [60e-6 + n / 2e9 for n in SIZES]
    assert fit_latency_bandwidth(SIZES, seconds) == pytest.approx((60e-6, 2e9), rel=1e-9)
    assert fit_latency_bandwidth([0, 10], [1.0, 2.0]) == pytest.approx((1.0, 10.0))


def test_fit_bears_noise_at_both_ends():
    """Errors of 10 % that alternate: an unweighted fit would put the latency anywhere."""
    seconds = [(60e-6 + n / 2e9) * (1.1 if i % 2 else 0.9) for i, n in enumerate(SIZES)]
    latency, bandwidth = fit_latency_bandwidth(SIZES, seconds)
    assert latency == pytest.approx(60e-6, rel=0.1) and bandwidth == pytest.approx(2e9, rel=0.15)


@pytest.mark.parametrize("sizes, seconds, message", [
    ([4, 8], [1.0], "seconds has 1 values: must have one per size, 2"),
    ([4, 4], [1.0, 2.0], "sizes=[4, 4]: must hold at least two different sizes"),
    ([4, 8], [1.0, 0.0], "seconds=[1.0, 0.0]: must all be above 0"),
    ([4, 8], [2.0, 1.0], "seconds=[2.0, 1.0]: must grow with the sizes"),
])
def test_fit_refuses(sizes, seconds, message):
    with pytest.raises(ValueError) as error:
        fit_latency_bandwidth(sizes, seconds)
    assert message in str(error.value)


def test_measured_laptop_is_a_machine_in_plausible_ranges(capfd):
    machine = measure_laptop(repeats=5)
    assert capfd.readouterr() == ("", "")
    print(machine)
    assert 1e-7 < machine.latency < 20e-3
    assert 20e6 < machine.bandwidth < 500e9
    assert 1e8 < machine.flops < 1e13
    assert 1e8 < machine.memory_bandwidth < 1e12
    assert machine.memory_bytes > 1e8
    assert machine.route(0, 7).links == () and machine.max_ranks is None


def test_repeats_are_checked():
    with pytest.raises(ValueError, match="repeats=0: must be an integer of at least 1"):
        measure_laptop(0)
