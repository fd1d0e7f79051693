"""Exercise 03, task 3.2: all-reduce by nodes and rails, on a split group."""

from __future__ import annotations

from . import collective_runs as runs
from .all_reduces import KINDS, VECTOR, sums
from .collective_runs import numbers
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES
from .verdicts import hints_of


def _levels_cost(bench: Bench) -> None:
    W, G, n = 4, 2, 96
    cases = [[(numbers(bench, rank, 0, *VECTOR), G)] for rank in range(W)]
    trace = runs.run(bench, W, runs.cost_calls, cases).trace
    sent, inside, between = runs.messages(trace), [0] * W, [0] * W
    for rank, to, nbytes in sent:
        (inside if rank // G == to // G else between)[rank] += nbytes
    text = (f"W = {W}, G = {G}, x of {n} B: expected each rank to send {n} B inside its node and "
            f"{n // 2} B to other nodes; sent inside {inside}, to other nodes {between}")
    if (inside, between) != ([n] * W, [n // 2] * W):
        raise Wrong(_levels_verdict(W, n, sent, inside, between), text)
    runs.expect_steps(f"W = {W}, G = {G}", trace, 4)


def _levels_verdict(W: int, n: int, sent, inside, between) -> str:
    if all((to - rank) % W == 1 for rank, to, _ in sent):
        return "flat-ring"
    if 0 in between:
        return "one-leader"
    if between == [n] * W:
        return "levels-swapped" if inside == [n // 2] * W else "whole-vector"
    return "too-much-traffic" if sum(inside + between) > W * (n + n // 2) else "too-little-traffic"


LEVELS = Task(
    "3.2",
    "hierarchical",
    "03_all_reduce",
    (
        Subcheck(
            "nodes of one rank, one node", sums(runs.value_calls, {2: ((1,), (2,))}, [VECTOR])
        ),
        Subcheck("two nodes of two", sums(runs.value_calls, {4: ((2,),)}, [VECTOR]), gate=True),
        Subcheck("between nodes 2(K-1)/K n/G sent by each rank", _levels_cost, points=2),
        Subcheck(
            "six ranks, nodes of two and of three, any size, shape and dtype",
            sums(runs.edge_calls, {6: ((2,), (3,))}, KINDS),
            points=2,
        ),
    ),
    forbid=TORCH_COLLECTIVES + tuple(
        f"course_lib.collectives.{name}" for name in ("hierarchical_all_reduce", "torus_all_reduce",
                                                      "recursive._over_axes")),
    hints=hints_of("""
        deadlock: Every rank calls split with the same lists, and then the same collectives.
        error: Every rank calls split, with lists that together hold all ranks of the group.
        call-mismatch: In a group all ranks make the same call with the same sizes. Are the ranks of
            a rail those with the same place in their node? They own the same chunk.
        no-tensor: Return x.
        not-in-place: The sums have to be copied back into the chunks of x.
        averaged: This is the mean; an all-reduce gives the sum.
        own-part: x is as it was: copy the gathered chunks back into x.
        tail-forgotten: x.view(-1).tensor_split(G) loses no element; n // G does.
        phase-missing: A chunk is right, the others are not: the all-gather inside the node is
            missing, or its result was not copied into x.
        rank-missing: Some ranks' numbers are missing. A rail takes one rank from every node:
            range(place, W, G). Inside a node alone you have the sum of one node. If one chunk is
            right on each rank, the all-gather inside the node is missing.
        added-twice: A vector is in the sum more than once. Inside the node a reduce-scatter, along
            the rail an all-reduce of the own chunk, then a gather, which adds nothing.
        wrong-value: Which chunk does each rank own after the reduce-scatter? Its rails must join
            equal chunks, and the gather puts chunk i back into place i.
        flat-ring: This is one ring over all ranks: two of them carry everything out of their node.
            Split the group: nodes, and rails.
        one-leader: One rank of each node talks for all, and its link carries everything. Let each
            rank of the node take a chunk of its own to the others of its rail.
        whole-vector: Each rank sends the whole vector to other nodes. Reduce-scatter inside
            the node first: then a rank has 1/G of the vector to take outside.
        levels-swapped: The two levels are exchanged: the rail gets whole vectors and the node
            chunks. First reduce-scatter inside the node.
        too-much-traffic: A rank sends 2(G-1)/G n inside its node, 2(K-1)/K n/G to others.
        too-little-traffic: A rank sends 2(G-1)/G n inside its node, 2(K-1)/K n/G to others.
        too-many-steps: Three phases, 2(G-1) + 2(K-1) steps: the ring collectives take no more.
    """),
)


@checker(LEVELS)
def check_hierarchical(fn, seed=None):
    """Points for `fn(x, group, G)`: x becomes the sum over ranks, by nodes of G and by rails."""
