"""What a rank's recorder writes: lines, FLOPs equal to closed forms, and a memory ledger that
follows the storages themselves. Messages are in test_recorder_messages.py.

Memory and FLOPs are checked twice, in a real process and in a dry run, with the same figures.
"""

import sys
from pathlib import Path

import cloudpickle
import pytest
import torch
from torch import nn

import course_lib
from course_lib import dry_run, run_ranks
from course_lib.collectives import ring_all_reduce
from course_lib.launch.errors import RankFailure

# Ranks get this file's functions by value: they need not import what only tests import
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture(params=["real", "dry"])
def record(request):
    """Runs fn(group) on one rank, for real or dry, and returns the Trace."""
    if request.param == "dry":
        return lambda fn: dry_run(fn, 1)
    return lambda fn: run_ranks(fn, 1).trace


def mark(group, label):
    """A point of the program to look at afterwards, see `held_at`."""
    group.compute(label, seconds=0.0)


def held_at(trace, label):
    """Bytes that rank 0 held per category when it passed `mark(group, label)`, zeros left out."""
    held = {}
    for e in trace.program(0):
        if e.kind == "compute" and e.label == label:
            return {category: nbytes for category, nbytes in held.items() if nbytes}
        if e.kind in ("alloc", "free"):
            sign = 1 if e.kind == "alloc" else -1
            held[e.category] = held.get(e.category, 0) + sign * e.nbytes
    raise AssertionError(f"no mark {label!r}")


def flops_of(trace, label):
    return sum(e.flops for e in trace.program(0) if e.kind == "compute" and e.label == label)


# -- what is recorded at all -------------------------------------------------------------------


def learn(group):
    layer = nn.Linear(8, 8)
    layer(torch.ones(4, 8)).sum().backward()
    ring_all_reduce(layer.weight.grad, group)


def test_calls_only():
    trace = run_ranks(learn, 2, record="calls").trace
    kinds = {e.kind for e in trace.events(0)}
    assert kinds == {"begin", "irecv", "isend", "wait", "compute", "end"}
    assert trace.flops(0) == 32  # the additions of its half inside the collective
    assert trace.peak_bytes(0) == 0


def test_nothing():
    run = run_ranks(learn, 2, record=False)
    assert run.trace is None
    assert repr(run) == "Run of 2 ranks: not recorded"


def test_every_event_names_the_line_that_made_it():
    trace = run_ranks(learn, 2).trace
    line = learn.__code__.co_firstlineno + 3
    for e in trace.events(1):
        if e.kind in ("begin", "end", "isend", "irecv", "wait"):
            assert e.site == ("test_recorder.py", line)
        if e.kind == "isend":
            [path] = Path(course_lib.__file__).parent.rglob(e.source[0])
            assert "group.exchange" in path.read_text().splitlines()[e.source[1] - 1]


# -- FLOPs -------------------------------------------------------------------------------------


def test_flops_of_a_linear_layer(record):
    def work(group):
        x = torch.ones(5, 3, requires_grad=True)
        layer = nn.Linear(3, 7)
        with group.label("forward"):
            y = layer(x).sum()
        with group.label("backward"):
            y.backward()

    trace = record(work)
    assert flops_of(trace, "forward") == 2 * 5 * 3 * 7
    assert flops_of(trace, "backward") == 2 * flops_of(trace, "forward")


def test_flops_of_an_mlp_with_a_batch_of_sequences(record):
    B, S, D, F = 2, 6, 8, 32

    def work(group):
        mlp = nn.Sequential(nn.Linear(D, F), nn.GELU(), nn.Linear(F, D))
        x = torch.ones(B, S, D, requires_grad=True)
        with group.label("forward"):
            y = mlp(x)
        with group.label("backward"):
            y.backward(torch.ones_like(y))

    trace = record(work)
    assert flops_of(trace, "forward") == 2 * B * S * (D * F + F * D)
    assert flops_of(trace, "backward") == 2 * flops_of(trace, "forward")


def test_bytes_read_and_written(record):
    def work(group):
        x, y = torch.ones(100), torch.ones(100)
        with group.label("add"):
            x + y.view(10, 10).view(100)  # a view moves nothing

    [event] = [e for e in record(work).program(0) if e.label == "add"]
    assert event.nbytes == 3 * 400


# -- memory ------------------------------------------------------------------------------------


def test_categories_and_storages_freed_when_dropped(record):
    def work(group):
        layer = nn.Linear(8, 8)
        mark(group, "made")
        y = layer(torch.ones(4, 8)).relu()
        mark(group, "forward")
        y.sum().backward()
        mark(group, "backward")
        del y
        mark(group, "dropped")
        layer.zero_grad()
        mark(group, "zeroed")

    trace = record(work)
    layer = 8 * 8 * 4 + 8 * 4
    assert held_at(trace, "made") == {"parameter": layer}
    # The layer's input and the output of the ReLU are saved for the backward pass
    assert held_at(trace, "forward") == {"parameter": layer, "activation": 2 * 4 * 8 * 4}
    # The input has gone with the graph; y is still in hand, and so are two gradients
    assert held_at(trace, "backward") == {"parameter": layer, "activation": 128, "other": layer}
    assert held_at(trace, "dropped") == {"parameter": layer, "other": layer}
    assert held_at(trace, "zeroed") == {"parameter": layer}


def test_peak(record):
    def work(group):
        a = torch.ones(1000)
        b = a + 1
        del a, b
        torch.ones(500)
        c = group.hold(torch.ones(10), "optimizer")
        del c

    trace = record(work)
    assert trace.peak_bytes(0) == 8000
    assert trace.peak_bytes(0, "other") == 8000
    assert trace.peak_bytes(0, "optimizer") == 40
    assert trace.held_bytes(0)[-1][1] == dict.fromkeys(trace.held_bytes(0)[-1][1], 0)


def test_hold_renames_what_is_counted_anyway(record):
    def work(group):
        state = torch.zeros(50)
        mark(group, "before")
        group.hold(state, "optimizer", "momentum")
        mark(group, "after")

    trace = record(work)
    assert held_at(trace, "before") == {"other": 200}
    assert held_at(trace, "after") == {"optimizer": 200}
    [named] = [e for e in trace.program(0) if e.kind == "alloc" and e.category == "optimizer"]
    assert named.label == "momentum"


def test_a_view_holds_its_whole_storage(record):
    def work(group):
        whole = torch.zeros(100)
        part = whole[:1]
        del whole
        mark(group, "view")
        part = part.clone()
        mark(group, "copy")

    trace = record(work)
    assert held_at(trace, "view") == {"other": 400}
    assert held_at(trace, "copy") == {"other": 4}


def test_resized_storage(record):
    def work(group):
        full = group.hold(torch.zeros(100), "parameter")
        full.untyped_storage().resize_(0)
        group._context.recorder.resized(full)
        mark(group, "empty")
        full.untyped_storage().resize_(400)
        group._context.recorder.resized(full)
        mark(group, "filled")
        del full
        mark(group, "dropped")

    trace = record(work)
    assert held_at(trace, "empty") == {}
    assert held_at(trace, "filled") == {"parameter": 400}
    assert held_at(trace, "dropped") == {}


def test_a_loss_dropped_without_backward_leaks_nothing(record):
    def work(group):
        weight = nn.Parameter(torch.ones(8, 8))
        for _ in range(3):
            # sigmoid and softmax save their own output: the trap of the saved-tensor hooks
            loss = (torch.ones(4, 8) @ weight).sigmoid().softmax(-1).sum()
        mark(group, "last")
        del loss
        mark(group, "dropped")

    trace = record(work)
    assert held_at(trace, "last")["activation"] == 3 * 128
    assert held_at(trace, "dropped") == {"parameter": 256}


def test_changing_a_saved_tensor_in_place_is_an_error():
    def work(group):
        x = torch.ones(4, requires_grad=True) * 2
        y = x * x
        x.add_(1)
        y.sum().backward()

    with pytest.raises(RankFailure, match="saved for the backward pass has been changed in place"):
        run_ranks(work, 1)
    with pytest.raises(RuntimeError, match="saved for the backward pass has been changed in place"):
        dry_run(work, 1)


def test_an_unknown_category_is_refused():
    with pytest.raises(ValueError, match="category='weights': must be one of parameter, gradient"):
        dry_run(lambda group: group.hold(torch.ones(1), "weights"), 1)
