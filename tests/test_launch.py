"""Starting ranks: from where, with what environment, how fast, and what is left afterwards.

Faults inside ranks are in test_faults.py, notebooks and scripts in test_launch_kernel.py.
"""

import multiprocessing as mp
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import cloudpickle
import psutil
import pytest
import torch
from launching import alive, descendants, seconds_until_gone, within

from course_lib import run_ranks
from course_lib.collectives import all_reduce, barrier
from course_lib.launch import pool
from course_lib.launch.errors import RankFailure

# Ranks get this file's functions by value: they need not import what only tests import
cloudpickle.register_pickle_by_value(sys.modules[__name__])
FIRST, SECOND = 3.0, 0.3  # seconds of the first launch, with the fork server, and of later ones


@pytest.fixture(autouse=True, scope="module")
def warm():
    with within(FIRST, "first launch"):
        run_ranks(lambda group: None, 2)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
def test_world_sizes(world_size):
    with within(SECOND if world_size <= 4 else 0.5, f"{world_size} ranks"):
        run = run_ranks(lambda group: (group.rank, group.size, group.ranks,
                                       all_reduce(torch.ones(3), group).tolist()), world_size)
    ranks = tuple(range(world_size))
    assert run.results == [(r, world_size, ranks, [world_size] * 3) for r in ranks]


def test_what_a_run_is():
    run = run_ranks(lambda group: barrier(group), 4)
    assert repr(run) == "Run of 4 ranks: 8 messages"
    assert run.results == [None] * 4
    assert (run.lines, run.warnings, run.trace.world_size) == ([], [], 4)


def test_arguments_travel():
    def work(group, x, *, scale, model):
        return (x * scale + group.rank, model(x).shape)

    run = run_ranks(work, 2, torch.ones(1, 3), scale=2, model=torch.nn.Linear(3, 5))
    assert [r[0].tolist() for r in run.results] == [[[2.0] * 3], [[3.0] * 3]]
    assert run.results[0][1] == (1, 5)


def test_never_forks_the_caller(monkeypatch):
    def forbidden():
        raise AssertionError("os.fork in the process that calls run_ranks")

    monkeypatch.setattr(os, "fork", forbidden)
    assert pool.method() in ("forkserver", "spares")
    assert mp.get_context(pool._forkserver_context().get_start_method()) is not None
    parents = run_ranks(lambda group: os.getppid(), 4).results
    assert len(set(parents)) == 1 and os.getpid() not in parents


def test_a_caller_that_seems_to_own_a_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert run_ranks(lambda group: torch.cuda.is_initialized(), 2).results == [False, False]


# -- what of the caller reaches the ranks ------------------------------------------------------


def test_environment_directory_and_path(monkeypatch, tmp_path):
    (tmp_path / "only_here_for_a_test.py").write_text("ANSWER = 42\n")
    monkeypatch.setenv("LOCKSTEP_TEST_VALUE", "now")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["the name", "--and", "arguments"])

    def work(group):
        import only_here_for_a_test

        return (os.environ.get("LOCKSTEP_TEST_VALUE"), os.getcwd(), only_here_for_a_test.ANSWER,
                sys.path, sys.argv)

    want = ("now", str(tmp_path), 42, sys.path, ["the name", "--and", "arguments"])
    assert run_ranks(work, 2).results == [want] * 2
    monkeypatch.delenv("LOCKSTEP_TEST_VALUE")
    assert run_ranks(work, 2).results[1][0] is None


def test_one_thread_per_rank(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")

    def threads(group):
        x = torch.ones(200, 200)
        x @ x
        return torch.get_num_threads()

    assert run_ranks(threads, 3).results == [1, 1, 1]


def test_the_environment_of_a_bad_network(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "^lo")
    monkeypatch.setenv("MASTER_ADDR", "nowhere.invalid")
    monkeypatch.setenv("MASTER_PORT", "1")
    run = run_ranks(lambda group: all_reduce(torch.ones(1), group).item(), 3)
    assert (run.results, run.lines) == ([3.0] * 3, [])


# -- printing ----------------------------------------------------------------------------------


def talk(group):
    for line in range(2):
        time.sleep(0.02 * random.random())
        print(f"line {line}")
        barrier(group)
    print("to stderr", file=sys.stderr)


SAID = "".join(f"[rank {r}] {text}\n" for r in range(3) for text in
               ("line 0", "line 1", "to stderr"))


def test_prints_are_marked_and_in_rank_order(capfd):
    def work(group):
        time.sleep(0.1 * (2 - group.rank))  # the last rank speaks first
        talk(group)

    run = run_ranks(work, 3)
    assert capfd.readouterr() == (SAID, "")
    assert run.lines == [(r, text) for r in range(3) for text in ("line 0", "line 1", "to stderr")]


@pytest.mark.soak
def test_fifty_runs_print_the_same(capfd):
    for _ in range(50):
        run_ranks(talk, 3)
        assert capfd.readouterr() == (SAID, "")


def test_prints_of_a_failed_run_are_shown(capsys):
    def work(group):
        print("before")
        barrier(group)
        if group.rank == 1:
            raise ValueError("stop")

    with pytest.raises(RankFailure) as caught:
        run_ranks(work, 2)
    assert capsys.readouterr().out == "[rank 0] before\n[rank 1] before\n"
    assert caught.value.lines == [(0, "before"), (1, "before")]


# -- what is left ------------------------------------------------------------------------------


def one_launch(number):
    """The pids of a launch; every third fails, in one of three ways."""
    def work(group):
        barrier(group)
        if number % 9 == 2 and group.rank == 1:
            raise ValueError("on purpose")
        if number % 9 == 5 and group.rank == 1:
            os._exit(3)
        if number % 9 == 8:
            group.recv(torch.empty(1), 1 - group.rank)
        return os.getpid()

    try:
        return run_ranks(work, 2).results
    except RankFailure:
        return []


def left(pids):
    """(processes, descriptors here, descriptors of the fork server, shared memory, folders)."""
    mine = psutil.Process()
    known = {os.getpid(), *pids, *descendants(os.getpid())}
    shm = Path("/dev/shm")
    shared = [p for p in shm.iterdir() if any(str(pid) in p.name for pid in known)] if (
        shm.exists()) else []
    folders = list(Path(tempfile.gettempdir()).glob(f"lockstep-run-{os.getpid()}-*"))
    server = pool._server()._forkserver_pid
    return (len(descendants(os.getpid())), mine.num_fds(), psutil.Process(server).num_fds(),
            len(shared), len(folders), mine.num_threads())


@pytest.mark.parametrize("launches", [6, pytest.param(30, marks=pytest.mark.soak)])
def test_many_launches_leave_what_two_leave(launches):
    pids = one_launch(0) + one_launch(1)
    after_two = left(pids)
    with within(SECOND * launches, f"{launches - 2} launches"):
        for number in range(2, launches):
            pids += one_launch(number)
    assert left(pids) == after_two
    assert after_two[3:5] == (0, 0)
    assert not alive(pids)
    assert len(pids) == 2 * (launches - len(range(2, launches, 3)))


def test_folders_of_killed_kernels_are_swept():
    gone = next(pid for pid in range(2_000_000, 4_000_000) if not psutil.pid_exists(pid))
    orphan = Path(tempfile.gettempdir(), f"lockstep-run-{gone}-x")
    orphan.mkdir()
    run_ranks(lambda group: None, 1)
    assert not orphan.exists()


# -- where processes come from -----------------------------------------------------------------


def server_pid(group):
    return os.getppid()


@pytest.mark.soak
def test_an_edited_library_file_restarts_the_fork_server(monkeypatch, tmp_path):
    edited = tmp_path / "edited.py"
    edited.write_text("")
    monkeypatch.setattr(pool, "LIBRARY", tmp_path)
    monkeypatch.setattr(pool, "_server_holds", {})  # as if the server were about to start
    old = run_ranks(server_pid, 2).results
    assert run_ranks(server_pid, 2).results == old
    os.utime(edited, (0, 0))
    with within(FIRST, "launch after an edit"):
        new = run_ranks(server_pid, 2).results
    assert new != old
    assert run_ranks(server_pid, 2).results == new
    seconds_until_gone(old, 5)


@pytest.fixture
def only_spares(monkeypatch):
    """A platform without a fork server, and nobody waiting yet or left over."""
    monkeypatch.setattr(mp, "get_all_start_methods", lambda: ["spawn"])
    monkeypatch.setattr(pool, "_forkserver_works", None)
    yield
    end_spares()


def end_spares():
    with pool._lock:
        while pool._spares:
            pool._spares.pop()[2].close()


def spares_ready(count):
    end = time.monotonic() + 120
    while True:
        with pool._lock:
            pids = [process.pid for _, process, _ in pool._spares]
        # Ready are those that have imported torch and now wait for work
        if len(pids) >= count and all(psutil.Process(p).cpu_percent(0.3) < 5 for p in pids):
            return pids
        assert time.monotonic() < end


@pytest.mark.soak
def test_spares_where_there_is_no_fork_server(only_spares):
    assert pool.method() == "spares"

    def work(group):
        assert os.environ["LOCKSTEP_RANK"] == "1" and torch.get_num_threads() == 1
        return os.getpid(), all_reduce(torch.ones(2), group).tolist()

    with within(20.0, "first launch, spares started for it"):
        first = run_ranks(work, 2).results
    assert [value for _, value in first] == [[2.0, 2.0]] * 2
    waiting = spares_ready(2)
    with within(2.0, "launch with spares that are ready"):
        second = run_ranks(work, 2, start="spares").results
    assert {pid for pid, _ in second} == set(waiting)  # used, once each
    assert not set(spares_ready(2)) & set(waiting)  # and replaced
    killed = pool._spares[0][1]
    killed.kill()
    killed.join(10)  # until its last thread has ended: a little after it counts as a zombie
    third = run_ranks(work, 2, start="spares").results
    assert [value for _, value in third] == [[2.0, 2.0]] * 2
    assert not alive(pid for pid, _ in first + second + third)


def test_a_fork_server_that_does_not_answer_is_not_used(monkeypatch):
    monkeypatch.setattr(pool, "_forkserver_works", None)
    monkeypatch.setattr(pool, "PATIENCE", 0.0)
    assert pool.method() == "spares"
    assert pool.method("forkserver") == "forkserver"
