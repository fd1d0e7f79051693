"""Bytes, messages and calls in the traces of collectives equal the closed forms of `costs`."""

import pytest
import torch

from course_lib import costs, dry_run, run_ranks
from course_lib.collectives import barrier, broadcast, naive_all_reduce, ring_all_reduce

SIZES = (0, 1, 2, 3, 4, 7, 8, 9, 1000)  # elements: below, at and above every world size, and ragged


def chunk_elements(n, world_size, i):
    """Elements of chunk i when n are cut into world_size chunks that differ by one at most."""
    i %= world_size
    return n // world_size + (i < n % world_size)


def expected(op, n, size, rank, world_size):
    """(bytes sent, messages sent) by the rank for n elements of `size` bytes."""
    nbytes, others = n * size, world_size - 1
    if op == "ring":
        once = sum(chunk_elements(n, world_size, rank + i) for i in (0, 1)) * size
        return 2 * nbytes - once if others else 0, costs.ring_all_reduce_steps(world_size)
    if op == "naive":
        messages = others if rank == 0 else 1
        return costs.naive_all_reduce_bytes(nbytes, world_size, rank), messages
    if op == "broadcast":
        root = rank == world_size - 1
        return (costs.broadcast_bytes(nbytes, world_size), others) if root else (0, 0)
    return costs.barrier_steps(world_size), costs.barrier_steps(world_size)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
def test_bytes_messages_and_calls_equal_the_costs(world_size):
    cases = [(op, n, dtype) for dtype in (torch.float32, torch.float64, torch.bfloat16)
             for n in SIZES for op in ("ring", "naive", "broadcast", "barrier")]

    def work(group):
        for op, n, dtype in cases:
            x = torch.ones(n, dtype=dtype)
            if op == "barrier":
                barrier(group)
            elif op == "broadcast":
                broadcast(x, group, root=group.size - 1)
            else:
                {"ring": ring_all_reduce, "naive": naive_all_reduce}[op](x, group)

    trace = run_ranks(work, world_size, record="calls").trace
    total = {op: 0 for op, _, _ in cases}
    for rank in range(world_size):
        calls = trace.calls(rank)
        assert [call.number for call in calls] == list(range(1, len(cases) + 1))
        sent = {call.channel: [] for call in calls}
        for e in trace.program(rank):
            if e.kind in ("send", "isend"):
                sent[e.channel].append(e.nbytes)
        for call, (op, n, dtype) in zip(calls, cases):
            found = sum(sent[call.channel]), len(sent[call.channel])
            want = expected(op, n, dtype.itemsize, rank, world_size)
            if op == "ring" and world_size == 1:
                want = (0, 0)
            assert found == want, (rank, op, n, dtype)
            assert call.op.startswith(op)
            if op != "barrier":
                assert (call.nbytes, call.dtype) == (n * dtype.itemsize, str(dtype)[6:])
            total[op] += found[0]
        assert trace.bytes_sent(rank) == sum(map(sum, sent.values()))
        assert trace.messages_sent(rank) == sum(map(len, sent.values()))
    # Ragged rings send what the formula says on average over the ranks
    mean = sum(costs.ring_all_reduce_bytes(n * dtype.itemsize, world_size)
               for op, n, dtype in cases if op == "ring")
    assert total["ring"] == pytest.approx(mean * world_size, rel=1e-12)


def test_ring_equals_the_formula_where_it_divides():
    trace = dry_run(lambda group: ring_all_reduce(torch.empty(24), group), 8)
    assert {trace.bytes_sent(r) for r in range(8)} == {costs.ring_all_reduce_bytes(96, 8)}


def test_segments_send_the_same_bytes_in_more_messages():
    trace = dry_run(lambda group: ring_all_reduce(torch.empty(36), group, segments=3), 4)
    assert trace.bytes_sent(0) == costs.ring_all_reduce_bytes(144, 4)
    assert trace.messages_sent(0) == 3 * costs.ring_all_reduce_steps(4)
