"""Everything that goes wrong in a rank is explained within two seconds, and leaves nothing behind.

Each test prints its time and asserts five times the target: it catches a hang; the benchmark judges
the time.
"""

import os
import signal
import sys
import time

import psutil
import pytest
import torch
import torch.distributed as dist

from course_lib import run_ranks
from course_lib.collectives import (
    all_gather,
    all_reduce,
    barrier,
    broadcast,
    naive_all_reduce,
    reduce_scatter,
    ring_all_reduce,
)
from course_lib.launch.errors import CallMismatch, Deadlock, RankDied, RankFailure, RankTimeout

TARGET = 2.0  # seconds from launch to explanation


@pytest.fixture(autouse=True, scope="module")
def warm():
    run_ranks(lambda group: None, 2)


def fails(function, world_size, kind, *words, target=TARGET, **options):
    """Run, expect the failure with these words, print the time, and see that the next run works."""
    began = time.monotonic()
    with pytest.raises(RankFailure) as caught:
        run_ranks(function, world_size, **options)
    took = time.monotonic() - began
    text = str(caught.value)
    print(f"{took:.2f} s (target {target} s)\n{text}")
    assert type(caught.value) is kind, text
    for word in words:
        assert word in text, f"{word!r} is missing from:\n{text}"
    assert took < 5 * target
    assert run_ranks(lambda group: group.rank, 2).results == [0, 1]
    assert not ranks_alive(), "a rank survives its run"
    return caught.value


def ranks_alive():
    """Rank processes of this test process (children of its fork server), zombies aside."""
    server = [
        p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE
    ]
    return [p for p in server if p.parent() and p.parent().pid != os.getpid()]


def here(function, offset):
    """ "test_faults.py line N" for the line `offset` lines below the def."""
    return f"test_faults.py line {function.__code__.co_firstlineno + offset}"


def test_exception_while_others_wait():
    def work(group):
        if group.rank == 3:
            raise ValueError("my own mistake")
        all_reduce(torch.ones(4), group)

    error = fails(
        work,
        4,
        RankFailure,
        "rank 3: ValueError: my own mistake",
        here(work, 2),
        "raise ValueError",
        "rank 0",
    )
    assert str(error).startswith("rank 3: ValueError")
    assert (
        len(str(error).splitlines()) == 5
    )  # the headline, the line, and one line for each other rank


def test_killed_rank():
    def work(group):
        if group.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        all_reduce(torch.ones(4), group)

    error = fails(work, 3, RankDied, "rank 1 was ended by signal 9 (SIGKILL)", "rank 0", "rank 2")
    assert error.rank == 1


def test_sys_exit():
    def work(group):
        if group.rank == 1:
            sys.exit(0)
        barrier(group)

    fails(work, 3, RankFailure, "rank 1: SystemExit: called sys.exit(0)", here(work, 2))


def test_os_exit():
    def work(group):
        barrier(group)
        if group.rank == 2:
            os._exit(0)
        barrier(group)

    fails(work, 3, RankDied, "rank 2 ended without an exception (exit code 0)", "barrier #1")


def test_keyboard_interrupt_in_a_rank():
    def work(group):
        if group.rank == 0:
            raise KeyboardInterrupt
        barrier(group)

    fails(work, 2, RankFailure, "rank 0: KeyboardInterrupt", here(work, 2))


def test_returning_while_a_peer_waits():
    def work(group):
        if group.rank == 0:
            group.recv(torch.empty(2), 1)

    error = fails(
        work, 2, Deadlock, "rank 0 waits in recv from rank 1", here(work, 2), "rank 1 has finished"
    )
    assert error.graph["edges"] == [(0, 1, "recv from rank 1")]


def test_both_send_first():
    def work(group):
        peer = 1 - group.rank
        group.send(torch.ones(10), peer)
        return group.recv(torch.empty(10), peer)

    error = fails(
        work,
        2,
        Deadlock,
        "deadlock: 0 -> 1 -> 0",
        "rank 0 waits in send to rank 1",
        "rank 1 waits in send to rank 0",
        here(work, 2),
    )
    assert {edge[:2] for edge in error.graph["edges"]} == {(0, 1), (1, 0)}


def test_everyone_receives_first():
    def work(group):
        left, right = (group.rank - 1) % group.size, (group.rank + 1) % group.size
        x = group.recv(torch.empty(3), left)
        group.send(x, right)

    fails(
        work,
        4,
        Deadlock,
        "deadlock: 0 -> 3 -> 2 -> 1 -> 0",
        "rank 2 waits in recv from rank 1",
        here(work, 2),
    )


def test_different_order():
    def work(group):
        x = torch.ones(4)
        if group.rank == 0:
            all_reduce(x, group)
            broadcast(x, group)
        else:
            broadcast(x, group)
            all_reduce(x, group)

    fails(
        work,
        2,
        CallMismatch,
        "call #1 differs",
        "rank 0 all_reduce",
        "rank 1 broadcast",
        here(work, 3),
        here(work, 6),
    )


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        (lambda rank: torch.ones(4 if rank == 0 else 6), ("(4,)", "(6,)")),
        (
            lambda rank: torch.ones(4, dtype=torch.float32 if rank else torch.int32),
            ("float32", "int32"),
        ),
        (lambda rank: torch.ones((2, 3) if rank else (3, 2)), ("(2, 3)", "(3, 2)")),
    ],
    ids=["counts", "dtypes of equal size", "shapes"],
)
@pytest.mark.parametrize("operation", [ring_all_reduce, naive_all_reduce, broadcast])
def test_different_tensors(operation, mine, words):
    def work(group):
        operation(mine(group.rank), group)

    fails(work, 3, CallMismatch, "call #1 differs", here(work, 1), *words)


@pytest.mark.parametrize("call", [
    lambda g: reduce_scatter([torch.ones(2), torch.ones(2).to([torch.float, torch.int][g.rank])],
                             g),
    lambda g: all_reduce(torch.ones(2), g, name=150 * "a" + "bc"[g.rank]),
    lambda g: all_gather(torch.ones(3, *[1] * 60), g, name="bc"[g.rank])])
def test_differences_late_in_a_call(call):
    fails(call, 2, CallMismatch, "call #1 differs")


def test_different_message_sizes():
    def work(group):
        if group.rank == 0:
            group.send(torch.ones(6), 1)
        else:
            group.recv(torch.empty(4), 0)

    fails(
        work,
        2,
        CallMismatch,
        "message #1 from rank 0 to rank 1 differs",
        "sends 24 B",
        "receives 16 B",
        "test_faults.py line",
    )


def test_different_message_dtypes():
    def work(group):
        x = torch.zeros(4, dtype=(torch.float32, torch.int32)[group.rank])
        group.exchange(x, 1 - group.rank, torch.empty_like(x), 1 - group.rank)

    fails(work, 2, CallMismatch, "differs", "float32", "int32")


def test_different_split_sizes():
    def work(group):
        group.split([[0, 1], [2, 3]] if group.rank < 3 else [[0, 1, 2], [3]])
        barrier(group)

    fails(
        work,
        4,
        CallMismatch,
        "call #1 differs",
        "[[0, 1], [2, 3]]",
        "[[0, 1, 2], [3]]",
        here(work, 1),
    )


def test_different_number_of_calls():
    def work(group):
        for _ in range(3 if group.rank == 0 else 2):
            all_reduce(torch.ones(2), group)

    fails(
        work,
        2,
        Deadlock,
        "within all_reduce #3",
        "rank 1 has finished",
        "rank 0 made 3, rank 1 made 2",
    )


def test_crossed_calls_warn_with_both_lines(capsys):
    def work(group):
        a, b = torch.tensor([1.0, 2.0]), torch.tensor([100.0, 200.0])
        if group.rank == 0:
            all_reduce(a, group)
            all_reduce(b, group)
        else:
            all_reduce(b, group)
            all_reduce(a, group)
        return a.tolist()

    run = run_ranks(work, 2)
    assert run.results == [[101.0, 202.0], [101.0, 202.0]]  # nonsense that no library can refuse
    [warning] = run.warnings
    assert "call #1 may be crossed" in warning
    assert f"rank 0 calls all_reduce on `a` ({here(work, 3)})" in warning
    assert f"rank 1 on `b` ({here(work, 6)})" in warning
    assert warning in capsys.readouterr().out


def test_crossed_calls_with_names_are_an_error():
    def work(group):
        for name in "ab" if group.rank == 0 else "ba":
            all_reduce(torch.ones(2), group, name=name)

    fails(work, 2, CallMismatch, "call #1 differs", "name='a'", "name='b'")


def test_right_programs_do_not_warn():
    def work(group):
        a, b = torch.ones(2), torch.ones(2)
        if group.rank == 0:
            all_reduce(a, group)
        else:
            all_reduce(a, group)
        all_reduce(b, group)

    assert run_ranks(work, 2).warnings == []


def test_collective_under_if_rank_0():
    def work(group):
        if group.rank == 0:
            all_reduce(torch.ones(4), group)
        return group.rank

    fails(
        work, 4, Deadlock, "rank 0 waits in", "within all_reduce #1", here(work, 2), "has finished"
    )


@pytest.mark.parametrize("subgroup", [False, True])
def test_skipped_all_reduce(subgroup):
    def work(group):
        part = group.split([[0, 2], [1, 3]]) if subgroup else group
        for step in range(3):
            if step == 2 and group.rank == 2:
                continue
            all_reduce(torch.ones(4), part)

    fails(
        work,
        4,
        Deadlock,
        "rank 0 waits in",
        "within all_reduce #3",
        here(work, 5),
        "rank 2 has finished",
    )


def test_a_deadlock_is_told_when_the_slow_ranks_are_stuck_too():
    def work(group):
        if group.rank == 3:
            return
        time.sleep(0.1 + 0.15 * group.rank)
        ring_all_reduce(torch.ones(16), group)

    stuck = fails(work, 4, Deadlock, "rank 0 waits in recv from rank 3", "rank 3 has finished",
                  "rank 1 waits in recv from rank 0", "rank 2 waits in send to rank 3")
    assert len(stuck.graph["edges"]) == 3


def test_dropped_isend():
    def work(group):
        x = torch.zeros(2)
        if group.rank == 0:
            group.isend(x, 1)
        else:
            group.recv(x, 0)

    fails(work, 2, RankFailure, "isend to rank 1 was never waited for", here(work, 3))


def test_tensor_changed_between_isend_and_wait():
    def work(group):
        x = torch.zeros(2)
        if group.rank == 0:
            handle = group.isend(x, 1)
            x.fill_(7)
            handle.wait()
        else:
            group.recv(x, 0)

    fails(work, 2, RankFailure, "was changed between isend and wait", here(work, 5))


def test_memory_released_between_isend_and_wait():
    def work(group):
        x = torch.zeros(2)
        if group.rank == 0:
            handle = group.isend(x, 1)
            x.untyped_storage().resize_(0)
            handle.wait()
        else:
            group.recv(x, 0)

    fails(work, 2, RankFailure, "was changed between isend and wait", here(work, 5))


def test_what_was_sent_can_be_released_afterwards():
    def work(group):
        x = torch.zeros(2)
        (group.send(x, 1) if group.rank == 0 else group.recv(x, 0))
        x.untyped_storage().resize_(0)
        return x.untyped_storage().nbytes()

    assert run_ranks(work, 2).results == [0, 0]


def test_endless_loop():
    def work(group):
        while group.rank == 1:
            pass
        barrier(group)

    fails(
        work, 2, RankTimeout, "not finished after 1.5 s", "rank 1 is at test_faults.py", timeout=1.5
    )


def test_raw_collective_that_hangs():
    def work(group):
        if group.rank == 0:
            dist.all_reduce(torch.ones(2))
        else:
            time.sleep(60)

    fails(
        work,
        2,
        RankTimeout,
        "torch.distributed",
        f"rank 0 is at {here(work, 2)}",
        here(work, 4),
        timeout=1.5,
    )


def test_result_that_cannot_be_pickled():
    fails(
        lambda group: (i for i in range(3)),
        2,
        RankFailure,
        "TypeError",
        "the result of rank",
        "generator",
        "cannot be sent back",
    )


def test_background_job_that_a_peer_never_starts():
    def work(group):
        stream = group.stream("comm")
        if group.rank == 0:
            stream.submit(all_reduce, torch.ones(2), stream.group).wait()

    fails(work, 2, Deadlock, "rank 0", "background job 1", "rank 1 has finished")


def test_background_job_that_raises():
    def work(group):
        job = group.stream("comm").submit(lambda: 1 / 0)
        job.wait()

    fails(work, 2, RankFailure, "ZeroDivisionError")


@pytest.mark.soak
def test_many_printed_lines(capsys):
    def work(group):
        for i in range(200_000):
            print("line", i)

    began = time.monotonic()
    run = run_ranks(work, 2)
    took = time.monotonic() - began
    out = capsys.readouterr().out
    print(f"{took:.2f} s (target 10 s)")
    assert took < 50
    assert "[rank 1] line 199999" in out
    assert "[rank 0] ... 199,800 earlier lines are not shown" in out
    assert len(run.lines) == 402


def test_rank_0_finishing_first():
    def work(group):
        if group.rank < 2:
            return "early"
        part = dist.new_group([2, 3], use_local_synchronization=True)
        time.sleep(0.3)
        x = torch.full((1,), float(group.rank))
        dist.broadcast(x, 2, group=part)
        return x.item()

    assert run_ranks(work, 4).results == ["early", "early", 2.0, 2.0]


def test_uncounted_arguments_are_named():
    with pytest.raises(ValueError, match="world_size=0: must be"):
        run_ranks(lambda group: None, 0)
    with pytest.raises(TypeError, match="fn=3: must be a function"):
        run_ranks(3, 2)
    with pytest.raises(ValueError, match="timeout=-1"):
        run_ranks(lambda group: None, 2, timeout=-1)
    with pytest.raises(ValueError, match="start='fork'"):
        run_ranks(lambda group: None, 2, start="fork")
    with pytest.raises(ValueError, match="device='bogus': must be a device of torch"):
        run_ranks(lambda group: None, 2, device="bogus")
    with pytest.raises(ValueError, match="backend='bogus': must be a backend"):
        run_ranks(lambda group: None, 2, backend="bogus")
    with pytest.raises(TypeError, match="cannot be sent to the ranks"):
        run_ranks(lambda group, lock: None, 2, __import__("threading").Lock())


@pytest.mark.parametrize(
    "bad",
    [
        (lambda g: g.send(torch.ones(1), 5), "to=5: must be a rank of the group, 0..1"),
        (lambda g: g.send(torch.ones(1), g.rank), "a rank sends only to others"),
        (lambda g: g.recv(torch.ones(4, 4).t(), 1 - g.rank), "contiguous"),
        (lambda g: g.send([1.0], 1 - g.rank), "takes a tensor, not list"),
        (
            lambda g: all_reduce(torch.ones(2, dtype=torch.int64), g, op="mean"),
            "needs a floating-point tensor",
        ),
        (
            lambda g: all_reduce(torch.ones(2), g, op="avg"),
            "op='avg': must be one of sum, mean, max",
        ),
        (lambda g: all_reduce(torch.ones(2) * 1j, g, op="max"), "complex numbers have no order"),
        (lambda g: all_reduce((torch.ones(2) * 1j).conj(), g), "has not computed yet"),
        (lambda g: g.send(torch.ones(2).to(torch.uint16), 1 - g.rank), "torch.uint16: must be"),
        (lambda g: g.exchange(torch.ones(2), g.rank, torch.ones(3), g.rank), "must be alike"),
        (lambda g: broadcast(torch.ones(2), g, root=2), "root=2: must be a rank of the group"),
        (lambda g: g.split([[0]]), "every rank of 0..1 must be in exactly one list"),
        (lambda g: run_ranks(lambda h: None, 2), "inside a rank"),
    ],
)
def test_bad_arguments_inside_ranks(bad):
    function, words = bad
    with pytest.raises(
        RankFailure, match=words.replace("(", r"\(").replace(".", r"\.").replace("[", r"\[")
    ):
        run_ranks(function, 2)


def test_errors_without_words_in_every_rank():
    def work(group):
        raise ValueError

    failure = fails(work, 3, RankFailure, ": ValueError\n", here(work, 1))
    assert failure.kind == "ValueError"


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_a_rank_at_its_memory_limit_still_reports():
    def work(group):
        import resource

        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + (60 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        kept = []
        while True:
            kept.append([0] * 100)

    failure = fails(work, 2, RankFailure, ": MemoryError\n", here(work, 8))
    assert failure.kind == "MemoryError"
