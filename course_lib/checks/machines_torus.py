"""Exercise 02, task 2.2: which links of a torus carry how much."""

from __future__ import annotations

import math
from collections import Counter

import torch

from ..machine import Torus
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .machines import answers
from .verdicts import hints_of

RULES = ("no-wrap", "always-plus", "ties-minus", "last-axis-first", "first-axis-fastest",
         "counts-messages", "last-message-only", "named-by-arrival", "first-link-only")


def loads(shape, messages, rule: str = "") -> dict[tuple[int, int, int], int]:
    """{(chip the link leaves, axis, +1 or -1): bytes}; `rule` is what else people do."""
    found = Counter()
    for src, dst, nbytes in messages:
        for chip, axis, step, into in _way(shape, src, dst, rule):
            link = (into if rule == "named-by-arrival" else chip, axis, step)
            more = 1 if rule == "counts-messages" else nbytes
            found[link] = more if rule == "last-message-only" else found[link] + more
            if rule == "first-link-only":
                break
    return {link: nbytes for link, nbytes in found.items() if nbytes}


def _way(shape, src: int, dst: int, rule: str):
    """(chip, axis, step, next chip) of every hop, in order."""
    strides = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
    if rule == "first-axis-fastest":
        strides = [math.prod(shape[:axis]) for axis in range(len(shape))]
    axes = range(len(shape))
    here = src
    for axis in reversed(axes) if rule == "last-axis-first" else axes:
        size, stride = shape[axis], strides[axis]
        at, goal = src // stride % size, dst // stride % size
        ahead = (goal - at) % size
        if 2 * ahead > size or rule == "ties-minus" and 2 * ahead == size:
            ahead -= size
        ahead = {"no-wrap": goal - at, "always-plus": (goal - at) % size}.get(rule, ahead)
        for _ in range(abs(ahead)):
            step = 1 if ahead > 0 else -1
            then = here + ((at + step) % size - at) * stride
            yield here, axis, step, then
            here, at = then, (at + step) % size


def by_machine(shape, messages) -> dict[tuple[int, int, int], int]:
    """The same by the routes of the machine model, which the replay uses."""
    torus = Torus("torus", 0.0, 1.0, 1.0, 1.0, max_ranks=math.prod(shape), shape=tuple(shape),
                  wraps=(True,) * len(shape))
    found = Counter()
    for src, dst, nbytes in messages:
        for name in torus.route(src, dst).path:  # "rank 5 x+"
            _, chip, way = name.split()
            found[int(chip), "xyz".index(way[0]), 1 if way[1] == "+" else -1] += nbytes
    return dict(found)


def _carried(name: str, shape, pairs):
    """A subcheck: `pairs` are (source, destination), or a number of random ones."""

    def test(bench: Bench) -> None:
        draw, chips, messages = bench.generator(24, len(name)), math.prod(shape), pairs
        if isinstance(pairs, int):
            messages = [torch.randperm(chips, generator=draw)[:2].tolist() for _ in range(pairs)]
        sizes = torch.randint(100, 1000, (len(messages),), generator=draw).tolist()
        messages = [(src, dst, nbytes) for (src, dst), nbytes in zip(messages, sizes)]
        got = answers(bench, name, [(tuple(shape), messages)])[0]
        _judge(f"torus {'x'.join(map(str, shape))}", got, shape, messages)

    return test


def _judge(where: str, got, shape, messages) -> None:
    try:
        mine = {tuple(map(int, link)): load for link, load in got if load}
    except (TypeError, ValueError):
        raise Wrong("no-dict", f"{where}: expected a dict, (chip, axis, step) to bytes, got "
                    f"{str(got)[:60]}") from None
    want = by_machine(shape, messages)
    if mine == want:
        return
    verdict = next((rule for rule in RULES if mine == loads(shape, messages, rule)), "wrong-value")
    link = min((k for k in mine.keys() | want.keys() if mine.get(k, 0) != want.get(k, 0)),
               key=lambda k: (k not in want, k))
    told = ", ".join(f"{s} to {d} {n} B" for s, d, n in messages[:3])
    more = ", ..." if len(messages) > 3 else ""
    raise Wrong(verdict, f"{where}, messages {told}{more}: expected {want.get(link, 0)} B on link "
                f"{link}, got {mine.get(link, 0):g}")


LOADS = Task("2.2", "link_loads", "02_machines", (
    Subcheck("along the second axis of 4 x 4", _carried("neighbours", (4, 4), [(5, 6), (9, 8)]),
             gate=True),
    Subcheck("the shorter way round; + when both are equal",
             _carried("round", (4, 6), [(6, 11), (11, 6), (0, 3), (22, 19)])),
    Subcheck("axis by axis, the first axis first",
             _carried("corner", (4, 6), [(0, 8), (23, 13), (7, 0)])),
    Subcheck("many messages on 3 x 4 x 5: loads add up", _carried("many", (3, 4, 5), 40), points=2),
), hints=hints_of("""
    no-dict: Return a dict: the key is (chip, axis, step), the value the bytes on that link.
    no-wrap: Each axis is closed: from the last chip it is one step to the first. Go the shorter way
        round, (goal - at) % size steps ahead or the rest back.
    always-plus: More than half way round in one direction is less than half in the other: then the
        steps are -1.
    ties-minus: When both ways round are equal, the message goes towards +.
    last-axis-first: Dimension order: finish the first axis before you begin the second.
    first-axis-fastest: Chip numbers are those of an array in C order: the last axis is the fastest,
        chip = x * Y + y.
    counts-messages: Add up the bytes of the messages, not their number.
    last-message-only: A link that two messages pass carries both: add, do not overwrite.
    named-by-arrival: A link has the name of the chip that it leaves, not of the one it enters.
    first-link-only: A message passes every link on its way, and loads all of them.
    wrong-value: Take one message, and write down its chips one by one: first along axis 0 until the
        coordinate is right, then along axis 1. Each hop loads the link of the chip it leaves.
"""))


@checker(LOADS)
def check_link_loads(fn, seed=None):
    """Points for `fn(shape, messages)`: bytes on each link of a torus closed on every axis."""
