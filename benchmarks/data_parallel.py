"""Data parallelism beside PyTorch's own: seconds per step and bytes held, on the same GPT.

    python benchmarks/data_parallel.py [--pairs 20] [--ranks 2 4]

Ours and PyTorch's alternate inside the same processes: `Overlap` and DistributedDataParallel,
ZeRO-1 and ZeroRedundancyOptimizer, ZeRO-2 and 3 and `fully_shard` (parameters kept after the
forward pass, or not; ZeRO-3 with prefetch, as there). Ours also with everything recorded, as used
in lectures. Then one step of each alone, with all memory in the ledger: the most bytes that a rank
holds. Reach: at most 1.3 of PyTorch's time as used in lectures, 1.0 with record=False; no more
memory.
"""

import argparse
import contextlib
import time

import torch
from pairs import alternate, print_table, ratios, seconds, spread

from course_lib import run_ranks
from course_lib.collectives import barrier
from course_lib.data_parallel import Overlap
from course_lib.model import Config, build, next_token_loss
from course_lib.zero import Zero1, Zero2, Zero3

CONFIG = Config(layers=4, dim=256, vocab=1024, seq=128, heads=4)  # 3.7 million parameters
BATCH, BUCKET = 8, 4 << 20  # rows per rank; bytes
KINDS = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3")


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3)


def ours(group, kind):
    """A function that takes one step."""
    net = build(CONFIG)
    if kind == "DDP":
        overlap, step = Overlap(net, group, BUCKET), adam(net.parameters())

        def finish():
            overlap.finish()
            step.step()
            overlap.zero()
    else:
        make = {"ZeRO-1": Zero1, "ZeRO-2": Zero2, "ZeRO-3": Zero3}[kind]
        finish = make(net, group, adam, **({"prefetch": True} if kind == "ZeRO-3" else {})).step
    return stepping(group, net, finish)


def theirs(group, kind):
    """The same step by PyTorch."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    net = build(CONFIG)
    called = net
    if kind in ("DDP", "ZeRO-1"):
        called = DistributedDataParallel(net, bucket_cap_mb=BUCKET >> 20,
                                         gradient_as_bucket_view=True)
    else:
        mesh = init_device_mesh("cpu", (group.size,))
        for module in [*net.units, net]:
            fully_shard(module, mesh=mesh, reshard_after_forward=kind == "ZeRO-3")
    step = (ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=1e-3)
            if kind == "ZeRO-1" else adam(net.parameters()))

    def finish():
        step.step()
        step.zero_grad()

    return stepping(group, called, finish)


def stepping(group, net, finish):
    tokens = torch.randint(CONFIG.vocab, (BATCH, CONFIG.seq + 1),
                           generator=torch.Generator().manual_seed(group.rank))

    def step():
        next_token_loss(net, tokens).backward()
        finish()

    return step


@contextlib.contextmanager
def unrecorded(group):
    """Inside, nothing of ours looks on: PyTorch's step is timed as it is."""
    recorder, group._context.recorder = group._context.recorder, None
    if recorder is not None:
        recorder.ops.__exit__(None, None, None)
        recorder.hooks.__exit__(None, None, None)
    try:
        yield
    finally:
        group._context.recorder = recorder
        if recorder is not None:
            recorder.hooks.__enter__()
            recorder.ops.__enter__()


def measure(group, kind, pairs):
    """[ours / PyTorch's] and PyTorch's seconds per step, on this rank."""
    def sample(step, look):
        barrier(group)
        with look():
            began = time.perf_counter()
            step()
            return time.perf_counter() - began

    with unrecorded(group):
        other = theirs(group, kind)
    mine = ours(group, kind)
    ways = {"ours": lambda: sample(mine, contextlib.nullcontext),
            "PyTorch": lambda: sample(other, lambda: unrecorded(group))}
    alternate(ways, 2)
    taken = alternate(ways, pairs)
    return ratios(taken["ours"], taken["PyTorch"]), taken["PyTorch"]


def held(group, kind, side):
    """Two steps, marked: the second has all optimizer states."""
    resize = torch.UntypedStorage.resize_

    def told(storage, size):  # fully_shard frees by resizing, as we do: the ledger must hear of it
        resize(storage, size)
        group.resized(torch.empty(0, dtype=torch.uint8).set_(storage))
        return storage

    if side == "PyTorch":
        torch.UntypedStorage.resize_ = told
    step = {"ours": ours, "PyTorch": theirs}[side](group, kind)
    step()
    group.mark("second step")
    step()


def peak(run):
    """Most bytes that rank 0 held in the second step."""
    trace = run.trace
    began = next(e.start for e in trace.program(0) if e.event == "second step")
    return max(sum(bytes_by_kind.values()) for t, bytes_by_kind in trace.held_bytes(0)
               if t > began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    options = parser.parse_args()
    table = []
    for ranks in options.ranks:
        for kind in options.kinds:
            (plain, torchs), (used, _) = (
                run_ranks(measure, ranks, kind, options.pairs, record=record,
                          timeout=1800).results[0] for record in (False, True))
            most = [peak(run_ranks(held, ranks, kind, side, timeout=600)) / 1e6
                    for side in ("ours", "PyTorch")]
            table.append([f"{ranks}", kind, spread(torchs, seconds),
                          *(spread(taken, "{:.2f}".format) for taken in (plain, used)),
                          *(f"{megabytes:.1f}" for megabytes in most)])
    print_table("our seconds per step divided by PyTorch's (1 = as fast, less = faster); "
                "most MB held by rank 0",
                ["ranks", "kind", "PyTorch", "not recorded", "recorded", "MB ours",
                 "MB PyTorch"], table)


if __name__ == "__main__":
    main()
