"""What recording costs: messages and call checking beside a ring all-reduce, the memory ledger and
the FLOP count beside a small GPT step.

    python benchmarks/recording.py [--pairs 60] [--ranks 4] [--only ring|step]

The ways alternate inside the same processes: what is switched off is taken out of the group's
context for one repetition. Target: at most 5 % of a 4 MB all-reduce.
"""

import argparse
import time

import torch
from pairs import alternate, percent, print_table, ratios, seconds, spread
from torch import nn

from course_lib import run_ranks
from course_lib.collectives import barrier, ring_all_reduce
from course_lib.recorder import Recorder

SIZES = {"4 MB": (1 << 22, 1), "1 MB": (1 << 20, 4), "4 KB": (1 << 12, 30)}  # bytes, calls a sample
WAYS = ("neither", "recorder", "checking", "both")


def ring(group, pairs):
    """{size: {way: seconds per all-reduce}} on this rank."""
    context = group._context
    parts = {"recorder": context.recorder, "writer": context.writer, "board": context.board}

    def switch(way):
        context.recorder = parts["recorder"] if way in ("recorder", "both") else None
        for name in ("writer", "board"):
            setattr(context, name, parts[name] if way in ("checking", "both") else None)

    def sample(way, x, calls):
        barrier(group)
        switch(way)
        ring_all_reduce(x, group)  # warm, and all ranks are here
        began = time.perf_counter()
        for _ in range(calls):
            ring_all_reduce(x, group)
        took = (time.perf_counter() - began) / calls
        switch("both")
        return took

    found = {}
    for name, (nbytes, calls) in SIZES.items():
        x = torch.zeros(nbytes // 4)
        ways = {way: lambda way=way, x=x, calls=calls: sample(way, x, calls) for way in WAYS}
        alternate(ways, 3)
        found[name] = alternate(ways, pairs)
    return found


class Block(nn.Module):
    """A transformer block with four heads."""

    def __init__(self, d):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = (t.view(B, S, 4, D // 4).transpose(1, 2)
                   for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, S, D))
        return x + self.mlp(self.norms[1](x))


def step(group, pairs):
    """{width: {way: seconds per training step}} of a GPT of two blocks."""
    found = {}
    for d in (64, 256):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(256, d), Block(d), Block(d), nn.Linear(d, 256))
        optimizer = torch.optim.AdamW(model.parameters())
        tokens = torch.randint(256, (4, 65))

        def train(model=model, optimizer=optimizer, tokens=tokens):
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        def sample(memory, train=train):
            recorder = Recorder(time.perf_counter(), memory=memory)
            with recorder:
                train()
                began = time.perf_counter()
                train()
                return time.perf_counter() - began

        ways = {"off": lambda s=sample: s(False), "on": lambda s=sample: s(True)}
        alternate(ways, 3)
        found[d] = alternate(ways, pairs)
    return found


def report_ring(ranks, pairs):
    results = run_ranks(ring, ranks, pairs, record="calls", timeout=3000).results
    rows = []
    for name in SIZES:
        # The slowest rank of each repetition: everybody waits for it
        taken = {way: [max(each) for each in zip(*(r[name][way] for r in results))] for way in WAYS}
        shares = [spread(ratios(taken[way], taken["neither"]), percent) for way in WAYS[1:]]
        rows.append([name, spread(taken["neither"], seconds), *shares])
    print_table(f"Ring all-reduce, {ranks} ranks, {pairs} repetitions of each way in turn",
                ["size", "neither", "recorder", "call checking", "both (target +5 % at 4 MB)"],
                rows)


def report_step(pairs):
    [found] = run_ranks(step, 1, pairs, record="calls", timeout=3000).results
    rows = [[f"d={d}", spread(taken["off"], seconds), spread(taken["on"], seconds),
             spread(ratios(taken["on"], taken["off"]), percent)] for d, taken in found.items()]
    print_table(f"Training step of a GPT (2 blocks, 4 x 64 tokens), {pairs} of each way in turn",
                ["width", "off", "memory and FLOPs recorded", "more"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--only", choices=["ring", "step"])
    options = parser.parse_args()
    if options.only != "step":
        report_ring(options.ranks, options.pairs)
    if options.only != "ring":
        report_step(options.pairs)
