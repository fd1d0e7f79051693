"""Exercise 08, tasks 8.4 and 8.5: the loop of a stage, and one that deadlocks, repaired."""

from __future__ import annotations

from ..schedule import Op, gpipe, one_f_one_b
from ..schedule.memory import peak_in_flight
from . import pipeline_runs as runs
from .machinery import Bench, Subcheck, Task, checker
from .probe import TORCH_COLLECTIVES
from .verdicts import hints_of

ENGINE = TORCH_COLLECTIVES + ("course_lib.pipeline.run_pipeline", "course_lib.pipeline.naive_step")
P, M = 4, 8


def backwards_reversed(p: int, m: int) -> list[list[Op]]:
    """GPipe with the backwards from the last micro-batch to the first."""
    return [[*(Op(r, "F", j) for j in range(m)), *(Op(r, "B", j) for j in reversed(range(m)))]
            for r in range(p)]


def trained(p: int, m: int, builder, driver=runs.in_order, given: bool = True, record="calls"):
    """A subcheck: gradients as in one process, forwards and backwards in the schedule's order."""

    def test(bench: Bench) -> None:
        schedule = builder(p, m)
        outcome = runs.run(bench, p, m, schedule if given else None, driver, record)
        where = f"W = {p}, m = {m}"
        runs.expect_gradients(bench, where, p, m, outcome)
        runs.expect_order(where, schedule, outcome)

    return test


def _traffic(given: bool):
    def test(bench: Bench) -> None:
        schedule = one_f_one_b(P, M) if given else None
        trace = runs.run(bench, P, M, schedule, record=True).trace
        runs.expect_messages(f"W = {P}, m = {M}", M, trace)

    return test


def _held(given: bool):
    def test(bench: Bench) -> None:
        schedule = one_f_one_b(P, M)
        trace = runs.run(bench, P, M, schedule if given else None, record=True).trace
        count = [round(peak_in_flight(schedule, rank)) for rank in range(P)]
        runs.expect_held(f"W = {P}, m = {M}", schedule, trace, count)

    return test


HINTS = hints_of("""
    no-gradient: A parameter has no gradient. For every B, y.backward(...) with what the next rank
        sent, or with nothing where y is the loss.
    not-scaled: Every gradient is m times too large: the batch's loss is the mean over
        micro-batches. Divide each micro-batch's loss by m, on the last rank.
    scaled-twice: The gradients are m times too small: divide by m once.
    scaled-at-every-stage: Each stage divides by m, and so divides what has been divided already.
        Only the last rank, where the loss is, divides.
    divided-by-ranks: m is the number of micro-batches, not of ranks.
    one-micro-batch: Only one micro-batch is in the gradients. They add up over all m: nothing
        zeroes them in between.
    ones-for-gradients: A stage's backward starts from the gradient that the next rank sends, not
        from ones: y.backward(gradient).
    no-communication: Each rank works alone. Rank r + 1 computes with what rank r sends, and rank r
        goes back from what rank r + 1 sends.
    inputs-off-rank-0: xs holds NaN on all ranks but 0: take what the rank before sends, and the
        shape alone from xs.
    kept-after-backward: What a micro-batch saved is still held after its backward. Take x and y out
        of the store, kept.pop(mb), and keep no list of outputs.
    too-much-traffic: More travels than one activation and one gradient for each micro-batch.
    other-messages: An activation goes to rank r + 1, its gradient comes back to rank r: m of each.
    one-at-a-time: Each micro-batch comes back before the next one starts: one rank works at a time.
""")


STAGE = Task(
    "8.4",
    "run_stage",
    "08_pipeline",
    (
        Subcheck("two ranks, GPipe: gradients as in one process", trained(2, 5, gpipe), points=2,
                 gate=True),
        Subcheck("one rank", trained(1, 3, gpipe)),
        Subcheck("four ranks, 1F1B", trained(P, M, one_f_one_b, record=True), points=2),
        Subcheck("m messages of one activation to each neighbour", _traffic(True)),
        Subcheck("activations are held until the backward, and no longer", _held(True)),
        Subcheck("three ranks, backwards from the last micro-batch to the first",
                 trained(3, 4, backwards_reversed, runs.in_another_order)),
    ),
    forbid=ENGINE,
    hints=HINTS | hints_of("""
        forbidden: Write the loop from send, recv, isend and irecv; the library's engine is off.
        deadlock: In 1F1B two neighbours send to each other at the same time, one an activation, the
            other a gradient. Start sends by isend, and wait for the handles at the end.
        error: A received activation needs requires_grad_() before the forward, so that x.grad is
            there after the backward. Every handle of isend has to be waited for. Rank 0 sends no
            gradient, the last rank no activation.
        order-ignored: The stage runs its ops in the order of the list, whatever it is.
        gpipe-again: All forwards ran first, whatever the list says. Walk through ops, one by one.
        micro-batch-ignored: A backward ran for another micro-batch than the list says. Keep x and y
            under op.mb, and take them from there: backwards may come in any order.
        wrong-value: Do forward and backward of one micro-batch belong together? Keep x and y under
            op.mb, and take them from there.
    """),
)


@checker(STAGE)
def check_run_stage(fn, seed=None):
    """Points for `fn(ops, module, xs, loss_of, group)`: a rank's ops, run; gradients in module."""


REPAIR = Task(
    "8.5",
    "repaired_step",
    "08_pipeline",
    (
        Subcheck("two ranks: ends, with the gradients of one process, in 1F1B's order",
                 trained(2, 5, one_f_one_b, given=False), gate=True),
        Subcheck("four ranks", trained(P, M, one_f_one_b, given=False, record=True), points=2),
        Subcheck("m messages of one activation to each neighbour", _traffic(False)),
        Subcheck("activations are held until the backward, and no longer", _held(False)),
        Subcheck("fewer micro-batches than ranks",
                 trained(4, 2, one_f_one_b, runs.with_few, given=False)),
    ),
    forbid=ENGINE,
    hints=HINTS | hints_of("""
        forbidden: Repair the loop; the library's engine is off.
        deadlock: Somewhere two neighbours still wait for each other. send returns only when the
            other side receives, and isend(...).wait() is a send. Either the send is waited for
            later, or it happens together with the receive, by exchange.
        error: Every handle of isend and irecv has to be waited for before the step ends.
        micro-batch-ignored: A backward takes the oldest micro-batch that is still held.
        order-ignored: The messages were the fault, not the order. Keep 1F1B's: min(p - 1 - r, m)
            forwards, then a forward and a backward in turn.
        gpipe-again: It ends, because it is GPipe now: all m micro-batches are held. Keep 1F1B's
            order, and change the messages.
        wrong-value: Data went to the wrong micro-batch. The k-th receive from a rank meets its k-th
            send: post receives in the order of the sends, each into a tensor of its own.
    """),
)


@checker(REPAIR)
def check_repaired_step(fn, seed=None):
    """Points for `fn(module, xs, loss_of, group)`: a step of 1F1B that does not deadlock."""
