"""Pipeline schedules beside torch.distributed.pipelining: seconds of a step, ratio, peak memory.

    python benchmarks/pipeline.py [--pairs 20] [--ranks 2 4] [--schedules gpipe one_f_one_b ...]

The same stages, micro-batches and loss; ours as used in lectures (recorded), ours not recorded, and
PyTorch's alternate inside the same processes. Peak memory is what one step holds at most besides
the weights, seen by the same ledger for both. Reach: no slower than PyTorch (ratio 1) without
recording, at most 1.3 of its time with it.
"""

import argparse
import time

import torch
from pairs import alternate, print_table, ratios, seconds, spread
from torch.distributed import pipelining

from course_lib import run_ranks, schedule
from course_lib.collectives import barrier
from course_lib.model import Config, build
from course_lib.pipeline import run_pipeline, split_stages, token_loss
from course_lib.recorder import Recorder, make_trace

CONFIG = Config(vocab=256, seq=64, layers=8, dim=256, heads=4)
MICRO_BATCHES, ROWS = 8, 4  # rows of a micro-batch
TORCH = {"gpipe": pipelining.ScheduleGPipe, "one_f_one_b": pipelining.Schedule1F1B,
         "interleaved_1f1b": pipelining.ScheduleInterleaved1F1B,
         "interleaved_zb": pipelining.ScheduleInterleavedZeroBubble,
         "zb_v": pipelining.ScheduleZBVZeroBubble}


def torchs(name, stages, group, inputs, targets):
    """A step of PyTorch's schedule on the stages."""
    count = stages.placement.num_stages
    wrapped = [pipelining.PipelineStage(part, s, count, torch.device("cpu"))
               for s, part in stages.parts.items()]
    plan = TORCH[name](wrapped[0] if count == group.size else wrapped, MICRO_BATCHES,
                       loss_fn=token_loss)
    given = [inputs] if 0 in stages.parts else []
    wanted = {"target": targets} if count - 1 in stages.parts else {}
    return lambda: plan.step(*given, **wanted)


def recorded(group, step):
    """The step with the recorder on, as in a lecture; its seconds and its peak of bytes."""
    barrier(group)
    context = group._context
    with Recorder(time.perf_counter()) as recorder:
        context.recorder, began = recorder, time.perf_counter()
        step()
        taken = time.perf_counter() - began
        context.recorder = None
    trace = make_trace(group.size, {group.rank: recorder.programs})
    peak = max(sum(held.values()) - held["parameter"] for _, held in trace.held_bytes(group.rank))
    return taken, peak


def plain(group, step):
    barrier(group)
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def measure(group, name, pairs):
    """({way: seconds per step}, {way: peak bytes}) on this rank."""
    plan = getattr(schedule, name)(group.size, MICRO_BATCHES)
    stages = split_stages(build(CONFIG), plan.placement, group.rank)
    tokens = torch.randint(CONFIG.vocab, (MICRO_BATCHES * ROWS, CONFIG.seq + 1),
                           generator=torch.Generator().manual_seed(0))
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    theirs = torchs(name, stages, group, inputs, targets)

    def ours():
        run_pipeline(stages, plan, inputs, targets, group)

    def fresh(way, step):
        stages.zero_grad()
        return way(group, step)

    ways = {"torch": lambda: fresh(plain, theirs), "ours": lambda: fresh(plain, ours),
            "recorded": lambda: fresh(recorded, ours)[0]}
    alternate(ways, 1)
    taken = alternate(ways, pairs)
    return taken, {"torch": fresh(recorded, theirs)[1], "ours": fresh(recorded, ours)[1]}


def row(ranks, name, results):
    """A line of the table; a step is over when the slowest rank is."""
    taken = {way: [max(times) for times in zip(*(mine[way] for mine, _ in results))]
             for way in results[0][0]}
    peak = {way: max(peaks[way] for _, peaks in results) for way in ("torch", "ours")}
    return [f"{ranks}", name, spread(taken["torch"], seconds),
            *(spread(ratios(taken[way], taken["torch"]), "{:.2f}".format)
              for way in ("ours", "recorded")),
            *(f"{peak[way] / 1e6:.1f}" for way in peak), f"{peak['ours'] / peak['torch']:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--schedules", nargs="+", default=list(TORCH), choices=list(TORCH))
    options = parser.parse_args()
    table = [row(ranks, name, run_ranks(measure, ranks, name, options.pairs, record=False,
                                        timeout=1800).results)
             for ranks in options.ranks for name in options.schedules]
    print_table(f"Step time divided by PyTorch's (1 = as fast, less = faster); {MICRO_BATCHES} "
                f"micro-batches of {ROWS} x {CONFIG.seq} tokens, {CONFIG.layers} layers of "
                f"{CONFIG.dim}",
                ["ranks", "schedule", "PyTorch", "ours", "recorded", "MB PyTorch", "MB ours",
                 "ratio"], table)


if __name__ == "__main__":
    main()
