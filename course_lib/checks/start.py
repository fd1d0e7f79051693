"""Exercise 00, task 0.1: mend a deadlock. Task 0.2 is in start_step.py."""

from __future__ import annotations

import torch

from ..launch.errors import RankFailure
from . import verdicts
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .probe import TORCH_COLLECTIVES, Other
from .verdicts import hints_of, show_tensor


def exchange_rounds(fn, group, inputs):
    """In a rank: (what came back, what x is now) for each input."""
    return [(fn(x, group), x) for x in inputs]


def _inputs(bench: Bench, world_size: int) -> list[list[torch.Tensor]]:
    """Per rank: a vector, a matrix of whole numbers, a single number; all different."""
    made = []
    for rank in range(world_size):
        draw = bench.generator(world_size, rank)
        numbers = torch.randperm(800, generator=draw)[:14] + 1000 * rank
        made.append([numbers[:5].float(), numbers[5:11].reshape(2, 3), numbers[11:12].double()[0]])
    return made


def _exchange(bench: Bench, world_size: int):
    inputs = _inputs(bench, world_size)
    return inputs, bench.run(world_size, exchange_rounds, [(mine,) for mine in inputs])


def _neighbours(*world_sizes: int):
    def test(bench: Bench) -> None:
        for world_size in world_sizes:
            try:
                inputs, outcome = _exchange(bench, world_size)
            except RankFailure as failure:
                raise _explained(failure) from None
            for rank, rounds in enumerate(outcome.values):
                _one_exchange(f"W = {world_size}, rank {rank}", rounds[0][0], 0, rank, inputs)

    return test


def _explained(failure: RankFailure) -> Exception:
    """Errors of a wrong peer number say more than "error"."""
    message = verdicts.of(failure)[1]
    if "must be a rank of the group" in message:
        return Wrong("only-two-ranks", message)
    return Wrong("error-alone", message) if "a rank sends only to others" in message else failure


def _one_exchange(where: str, got, which: int, rank: int, inputs) -> None:
    """Raise Wrong unless `got` is input `which` of the rank before."""
    world_size = len(inputs)
    want = inputs[(rank - 1) % world_size][which]
    if not isinstance(got, torch.Tensor):
        kind = got.kind if isinstance(got, Other) else type(got).__name__
        raise Wrong("no-tensor", f"{where}: expected a tensor, got a {kind}")
    before = (rank - 1) % world_size
    text = f"{where}: expected {show_tensor(want)} from rank {before}, got {show_tensor(got)}"
    if got.shape == want.shape and got.dtype == want.dtype and torch.equal(got, want):
        return
    for peer, mine in enumerate(inputs):
        if got.shape == mine[which].shape and torch.equal(got.double(), mine[which].double()):
            verdict = "own-tensor" if peer == rank else "wrong-neighbour"
            if peer == (rank + 1) % world_size:
                verdict = "wrong-direction"
            raise Wrong(verdict, f"{text}, which is the tensor of rank {peer}")
    raise Wrong("wrong-value", text)


def _any_tensor(bench: Bench) -> None:
    inputs, outcome = _exchange(bench, 4)
    for rank, rounds in enumerate(outcome.values):
        for which, (got, now) in enumerate(rounds):
            x = inputs[rank][which]
            where = f"W = 4, rank {rank}, x of shape {tuple(x.shape)} and dtype {str(x.dtype)[6:]}"
            _one_exchange(where, got, which, rank, inputs)
            if not torch.equal(now, x):
                raise Wrong(
                    "changed-x",
                    f"{where}: x is {show_tensor(now)} afterwards, it was {show_tensor(x)}",
                )
    want = [sum(x.nbytes for x in mine) for mine in inputs]
    for rank, (sent, wanted) in enumerate(zip(outcome.bytes_sent(), want, strict=True)):
        if sent != wanted:
            raise Wrong(
                "too-much-traffic" if sent > wanted else "no-communication",
                f"W = 4, rank {rank}: expected {wanted} bytes sent (each x once), got {sent}",
            )


EXCHANGE = Task(
    "0.1",
    "exchange_with_neighbour",
    "00_start",
    (
        Subcheck("one rank is its own neighbour", _neighbours(1)),
        Subcheck("two ranks", _neighbours(2), gate=True),
        Subcheck("three and four ranks", _neighbours(3, 4)),
        Subcheck("any shape and dtype, x kept, each x sent once", _any_tensor),
    ),
    forbid=TORCH_COLLECTIVES,
    hints=hints_of("""
        deadlock: A send returns only when the other side has received. In a ring where
            everybody sends first, nobody ever receives. Let odd ranks receive first, or
            start the send with isend, or use exchange.
        no-tensor: Return the tensor that was received.
        own-tensor: You return your own x. Receive into a new tensor, torch.empty_like(x),
            and return that one.
        wrong-direction: With two ranks left and right are the same rank. Send to (rank + 1)
            % size and receive from (rank - 1) % size.
        wrong-neighbour: The neighbour is (rank - 1) % size. A formula such as 1 - rank is
            right for two ranks only.
        only-two-ranks: It works for two ranks and not for three. Is your neighbour 1 -
            rank? With the modulo of group.size it is right for every number of ranks.
        error-alone: A rank that is alone has no other to send to: group.size is 1, and its
            neighbour is itself. group.exchange knows this case; with send and recv, return
            a copy of x.
        changed-x: x is what you send, so it must stay as it is. Receive into another
            tensor.
        too-much-traffic: One message per rank is enough: no broadcast, no copy to all.
    """),
)


@checker(EXCHANGE)
def check_exchange_with_neighbour(fn, seed=None):
    """Points for `fn(x, group)`, which returns the x of the rank before, and leaves x alone."""
