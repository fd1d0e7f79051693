"""Exercise 02, task 2.1: latency and bandwidth of a ping-pong. The other tasks have files too."""

from __future__ import annotations

import torch

from .machinery import Bench, Subcheck, Task, Wrong, checker
from .verdicts import hints_of


class Calls:
    """In a rank: what fn returns for each of the cases, as plain numbers. One name, one run."""

    def __init__(self, name: str):
        self.__qualname__ = name

    def __call__(self, fn, group, cases):
        return [numbers(fn(*case)) for case in cases]


def numbers(value):
    """A pair, a list or a dict of numbers as lists of floats; what is none of these stays."""
    if isinstance(value, dict):
        return [[numbers(key), numbers(load)] for key, load in value.items()]
    if isinstance(value, (tuple, list)):
        return [numbers(item) for item in value]
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return value


def answers(bench: Bench, name: str, cases: list[tuple]) -> list:
    """What the learner's function returns for each case, called in one rank."""
    return bench.run(1, Calls(name), [(cases,)]).values[0]


def pair(where: str, got) -> tuple[float, float]:
    """The two numbers returned, or Wrong."""
    if not (isinstance(got, list) and len(got) == 2 and all(isinstance(v, float) for v in got)):
        raise Wrong("no-pair", f"{where}: expected two numbers, got {str(got)[:60]}")
    return got[0], got[1]


def _line(bench: Bench, key: int) -> tuple[float, float]:
    """A latency of 20 to 120 us, a bandwidth of 1 to 3 GB/s."""
    a, b = torch.randint(0, 101, (2,), generator=bench.generator(21, key)).tolist()
    return (20 + a) * 1e-6, (1 + b / 50) * 1e9


FITS = {  # what else people return, from the right (latency, bandwidth)
    "not-halved": lambda a, b: (2 * a, b / 2),
    "swapped": lambda a, b: (b, a),
    "not-inverted": lambda a, b: (a, 1 / b),
    "swapped-and-not-inverted": lambda a, b: (1 / b, a),
}


def _fitted(name: str, sizes: list[int], scatter: float, within: float):
    def test(bench: Bench) -> None:
        latency, bandwidth = _line(bench, len(sizes))
        times = [2 * (latency + n / bandwidth) * (1 + scatter * (1, -1)[i // 2 % 2])
                 for i, n in enumerate(sizes)]
        got = pair(name, answers(bench, name, [(sizes, times)])[0])
        _judge_fit(name, got, (latency, bandwidth), sizes, within)

    return test


def _judge_fit(where: str, got, right, sizes, within: float) -> None:
    verdict = next((v for v, change in FITS.items()
                    if all(abs(g / w - 1) < max(within, 1e-3)
                           for g, w in zip(got, change(*right)))), "")
    predicted = [(n, got[0] + n / got[1] if got[1] else 0.0, right[0] + n / right[1])
                 for n in sizes]
    n, mine, true = max(predicted, key=lambda p: abs(p[1] / p[2] - 1))
    if abs(mine / true - 1) <= within:
        return
    if not verdict:
        verdict = ("no-latency" if got[0] == 0 else "large-ones-decide" if within > 0.01
                   else "wrong-line")
    raise Wrong(verdict, f"{where}: expected {right[0]:.4g} s and {right[1]:.4g} B/s, got "
                f"{got[0]:.4g} and {got[1]:.4g}; for {n} bytes that means {mine:.3g} s one way "
                f"instead of {true:.3g}")


SCATTERED = sorted(2 * [4**k for k in range(1, 12)])
FIT = Task("2.1", "fit_ping_pong", "02_machines", (
    Subcheck("times exactly on a line", _fitted("exact", [4**k for k in range(1, 12)], 0, 1e-6),
             gate=True),
    Subcheck("sizes in any order, none of them small",
             _fitted("no small sizes", [3 << 20, 1 << 20, 4 << 20, 2 << 20], 0, 1e-6)),
    Subcheck("times that scatter by 10 %: within 8 % at every size",
             _fitted("scattered", SCATTERED, 0.1, 0.08), points=2),
), forbid=("course_lib.machine.fit_latency_bandwidth",), hints=hints_of("""
    no-pair: Return two numbers, latency in seconds and bandwidth in bytes per second.
    not-halved: The times are there and back, so each holds two messages. One way is half.
    swapped: The two are exchanged: latency first, then bandwidth.
    swapped-and-not-inverted: Latency first; and the slope of the line is seconds per byte, the
        bandwidth is 1 / slope.
    not-inverted: The slope of the line is seconds per byte. The bandwidth is 1 / slope.
    no-latency: Bytes over seconds is no bandwidth: it holds the latency too. Two unknowns need a
        line, seconds = latency + bytes / bandwidth.
    large-ones-decide: Errors of large messages have the most microseconds, and decide alone; and
        two messages are too few. Use all, and weigh each square by 1 / seconds**2: then 10 % counts
        the same at every size.
    wrong-line: No size has the latency for itself, and the sizes come in any order. Take the
        slope from differences of all times, and the latency where the line meets 0 bytes.
"""))


@checker(FIT)
def check_fit_ping_pong(fn, seed=None):
    """Points for `fn(sizes, seconds)`: (latency, bandwidth) of ping-pong times there and back."""
