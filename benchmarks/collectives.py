"""All-reduce beside gloo's own: seconds, bus bandwidth and ratio, from 4 KB to 64 MB.

    python benchmarks/collectives.py [--pairs 20] [--ranks 2 4]

`all_reduce` (which chooses), the textbook ring and gloo alternate inside the same processes; ours
also with recording and call checking off. Ranks run under SCHED_BATCH, as `run_ranks` sets it:
gloo too is faster that way. Reach: as fast as gloo from 1 MB on, at least 0.8 of it as used in
lectures; short messages no slower.
"""

import argparse
import time

import torch
import torch.distributed as dist
from pairs import alternate, print_table, ratios, seconds, spread

from course_lib import costs, run_ranks
from course_lib.collectives import all_reduce, barrier, ring_all_reduce

SIZES = {"4 KB": (1 << 12, 20), "64 KB": (1 << 16, 10), "1 MB": (1 << 20, 4), "4 MB": (1 << 22, 1),
         "16 MB": (1 << 24, 1), "64 MB": (1 << 26, 1)}  # bytes, calls a sample


def measure(group, pairs):
    """{size: {way: seconds per all-reduce}} on this rank."""
    context = group._context
    parts = {name: getattr(context, name) for name in ("recorder", "writer", "board")}

    def plain(call):
        for name in parts:
            setattr(context, name, None)
        try:
            call()
        finally:
            for name, part in parts.items():
                setattr(context, name, part)

    def sample(call, calls):
        barrier(group)
        began = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - began) / calls

    found = {}
    for name, (nbytes, calls) in SIZES.items():
        x = torch.zeros(nbytes // 4)
        what = {"gloo": lambda x=x: dist.all_reduce(x),
                "ours": lambda x=x: all_reduce(x, group),
                "ours, not recorded": lambda x=x: plain(lambda: all_reduce(x, group)),
                "textbook ring": lambda x=x: ring_all_reduce(x, group)}
        ways = {way: lambda call=call, calls=calls: sample(call, calls)
                for way, call in what.items()}
        alternate(ways, 2)
        found[name] = alternate(ways, pairs)
    return found


def rows(found, ranks):
    """A line per size: what is chosen, gloo's seconds, the ratios gloo / ours, bus bandwidth."""
    for name, taken in found.items():
        nbytes = SIZES[name][0]
        gloo = taken["gloo"]
        bus = [costs.bus_bandwidth("all_reduce", nbytes, ranks, t) / 1e9 for t in taken["ours"]]
        yield [f"{ranks}", name, costs.choose_all_reduce(nbytes, ranks).algorithm.split("_all")[0],
               spread(gloo, seconds),
               *(spread(ratios(gloo, taken[way]), "{:.2f}".format)
                 for way in ("ours", "ours, not recorded", "textbook ring")),
               spread(bus)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    options = parser.parse_args()
    table = []
    for ranks in options.ranks:
        run = run_ranks(measure, ranks, options.pairs, record="calls", timeout=1800)
        table += rows(run.results[0], ranks)
    print_table("gloo's seconds divided by ours (1 = as fast, more = faster)",
                ["ranks", "size", "chosen", "gloo", "ours", "not recorded", "textbook ring",
                 "bus GB/s"], table)


if __name__ == "__main__":
    main()
