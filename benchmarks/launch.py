"""How long a launch takes beside torch.multiprocessing.spawn, which does the same: start processes,
initialise gloo, one all-reduce, end.

    python benchmarks/launch.py [--pairs 20] [--ranks 4 8] [--without-spawn]

Targets on a laptop, from the second launch on: 0.3 s for 4 ranks, 0.5 s for 8.
"""

import argparse
import tempfile
import time

import torch
import torch.distributed as dist

TARGETS = {4: 0.3, 8: 0.5}  # seconds


def spawned(rank, world_size, store):
    """What torch's own helper runs in each process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, world_size), rank=rank,
                            world_size=world_size)
    dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()


def by_spawn(world_size):
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        torch.multiprocessing.spawn(spawned, (world_size, f"{folder}/store"), nprocs=world_size)
        return time.perf_counter() - began


def by_run_ranks(world_size):
    # Here and not above: the processes of spawn read this file again, and need none of it
    from course_lib import run_ranks
    from course_lib.collectives import all_reduce

    began = time.perf_counter()
    run_ranks(lambda group: all_reduce(torch.ones(4), group), world_size)
    return time.perf_counter() - began


def main():
    from pairs import alternate, print_table, ratios, seconds, spread

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--without-spawn", action="store_true")
    options = parser.parse_args()
    first = by_run_ranks(2)
    rows = []
    for ranks in options.ranks:
        ways = {"ours": lambda n=ranks: by_run_ranks(n)}
        if not options.without_spawn:
            ways["spawn"] = lambda n=ranks: by_spawn(n)
        taken = alternate(ways, options.pairs)
        row = [str(ranks), spread(taken["ours"], seconds),
               f"{TARGETS[ranks]} s" if ranks in TARGETS else "-"]
        if "spawn" in taken:
            row += [spread(taken["spawn"], seconds),
                    spread(ratios(taken["spawn"], taken["ours"]), "{:.0f}".format)]
        rows.append(row)
    head = ["ranks", "run_ranks", "target", "spawn", "times faster"][:len(rows[0])]
    print_table(f"Launches, {options.pairs} of each in turn (the first, with the fork server, "
                f"took {seconds(first)})", head, rows)


if __name__ == "__main__":
    main()
