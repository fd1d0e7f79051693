"""Exercise 01, task 1.5: all-to-all with split sizes."""

from __future__ import annotations

import torch

from ..launch.errors import CallMismatch
from . import collective_runs as runs
from . import verdicts
from .collective_runs import FORBID, SIZES, difference, same
from .machinery import Bench, Subcheck, Task, Wrong, checker
from .verdicts import hints_of

SIZES_BYTES = 8  # of one announced size, int64


def _sizes(kind: str, W: int) -> list[list[list[int]]]:
    """For each case, the rows that each rank (row) sends to each (column)."""
    if kind == "equal":
        return [[[2] * W] * W]
    if kind == "ragged":
        return [
            [[(3 * src + 2 * to + src * to) % 4 for to in range(W)] for src in range(W)],
            [[0 if to == src else 1 + (src + 2 * to) % 3 for to in range(W)] for src in range(W)],
        ]
    return [
        [[3 if to == 0 else 0 for to in range(W)]] * W,
        [[1 + to if src == W - 1 else 0 for to in range(W)] for src in range(W)],
        [[0] * W] * W,
    ]


def _table(bench: Bench, sizes: list[list[int]], case: int) -> list[torch.Tensor]:
    """x of each rank: [rows, 2] float32 (case 0), [rows, 2] int64 (1) or [rows, 2, 3] (2). A row
    begins with 1000 * from + 100 * to + its number, and goes on with random numbers.
    """
    tables = []
    for src, row in enumerate(sizes):
        shape = (sum(row), 2, 3) if case == 2 else (sum(row), 2)
        x = torch.randint(1, 9999, shape, generator=bench.generator(src, case, *row))
        marks = [1000 * src + 100 * to + k for to, n in enumerate(row) for k in range(n)]
        x.flatten(1)[:, 0] = torch.tensor(marks, dtype=x.dtype)
        tables.append(x if case == 1 else x.float())
    return tables


def exchanges(driver, kind: str, worlds: tuple[int, ...]):
    """A subcheck of all_to_all: one launch for each number of ranks, a case for each table of
    sizes.
    """

    def test(bench: Bench) -> None:
        for W in worlds:
            asked = _sizes(kind, W)
            tables = [_table(bench, sizes, case) for case, sizes in enumerate(asked)]
            cases = [
                [(xs[rank].clone(), list(sizes[rank])) for xs, sizes in zip(tables, asked)]
                for rank in range(W)
            ]
            try:
                outcome = runs.run(bench, W, driver, cases)
            except CallMismatch as failure:
                _judge_width(failure, {xs[0].shape[1:].numel() for xs in tables}, kind)
                raise
            for case, (sizes, xs) in enumerate(zip(asked, tables)):
                pieces = [x.split(row) for x, row in zip(xs, sizes)]
                for rank, seen in enumerate(outcome.values):
                    received = [row[rank] for row in sizes]
                    where = f"W = {W}, rank {rank}, send_sizes {sizes[rank]}, to receive {received}"
                    result, x, late = seen[case]
                    _judge(where, rank, result, pieces)
                    if kind == "extreme":
                        runs.expect_kept(where, "x", xs[rank], x)
                        runs.expect_own_storage(where, "x", result, late)

    return test


def _judge_width(failure: CallMismatch, widths: set[int], kind: str) -> None:
    """Raise Wrong when a message of rows met room for as many elements. Where sizes differ, a first
    message is no proof: nobody has said how many rows come.
    """
    _, message = verdicts.of(failure)
    found = verdicts.disagreement(message)
    if found is None or ("message #1 " in message and kind != "equal"):
        return
    sent, its, received, other = found
    if its == other and received and sent % received == 0 and sent // received in widths:
        raise Wrong("row-width", message)


def _judge(where: str, rank: int, got, pieces) -> None:
    """Raise Wrong unless `got` holds piece `rank` of every rank's x, in the order of the ranks."""
    want = torch.cat([row[rank] for row in pieces])
    runs.expect_tensor(where, got)
    if same(got, want):
        return
    text = difference(where, got, want)
    if got.dim() != want.dim() or got.shape[1:] != want.shape[1:] or got.dtype != want.dtype:
        raise Wrong("wrong-shape", text)
    ours, theirs = _rows(got), _rows(want)
    if sorted(ours) == sorted(theirs):
        raise Wrong("wrong-order", f"{text}: the right rows in another order")
    if [row for row in ours if row in theirs] == theirs:
        raise Wrong("padded", f"{text}: {len(ours)} rows in the place of {len(theirs)}")
    if same(got, torch.cat(pieces[rank])):
        raise Wrong("own-part", f"{text}, which is the rank's own x")
    own = _rows(pieces[rank][rank])
    if sorted(ours + own) == sorted(theirs):
        raise Wrong("own-rows-missing", f"{text}: the rows from rank {rank} itself are missing")
    equal = [torch.cat(row).tensor_split(len(pieces))[rank] for row in pieces]
    if same(got, torch.cat(equal)):
        raise Wrong("equal-pieces", f"{text}: piece {rank} of {len(pieces)} equal ones")
    missing = sum(row not in ours for row in theirs)
    raise Wrong(
        "rows-missing" if missing else "wrong-value",
        f"{text}: {missing} of {len(theirs)} rows are missing",
    )


def _rows(x: torch.Tensor) -> list[tuple]:
    return [tuple(row.reshape(-1).tolist()) for row in x]


def exchanges_cost(*worlds: int):
    """A subcheck: every row once and straight, W-1 sizes besides, at most 2(W-1) steps and a few
    more where sends get into each other's way.
    """

    def test(bench: Bench) -> None:
        for W in worlds:
            sizes = [[4 + 3 * ((2 * src + to) % W) for to in range(W)] for src in range(W)]
            wide = [x.repeat(1, 32) for x in _table(bench, sizes, 0)]  # rows of 256 B
            trace = runs.run(
                bench, W, runs.cost_calls, [[(x, list(sizes[rank]))] for rank, x in enumerate(wide)]
            ).trace
            _judge_cost(f"W = {W}, rows of 256 B", trace, sizes)

    return test


def _judge_cost(where: str, trace, sizes: list[list[int]]) -> None:
    W = trace.world_size
    runs.expect_no_hub(where, trace)
    longest = 256 * max(max(row) for row in sizes)
    for rank, row in enumerate(sizes):
        large = [nbytes for src, _, nbytes in runs.messages(trace) if src == rank and nbytes > 256]
        if len(large) == W - 1 and set(large) == {longest}:
            raise Wrong(
                "padded-traffic",
                f"{where}, rank {rank}: expected messages of "
                f"{256 * min(row)} to {256 * max(row)} B, got {large}",
            )
    want = [256 * (sum(row) - row[rank]) for rank, row in enumerate(sizes)]
    for rank, sent in enumerate(want):
        if trace.bytes_sent(rank) - sent == SIZES_BYTES * W * (W - 1):
            raise Wrong(
                "table-of-sizes",
                f"{where}, rank {rank}: expected {sent} B of rows sent and {SIZES_BYTES} B to each "
                f"of the others for a size, got {SIZES_BYTES * W} B to each",
            )
    spare = SIZES_BYTES * (W - 1)
    runs.expect_bytes(where, trace, want, spare, everything=256 * (W - 1) * min(map(sum, sizes)))
    runs.expect_steps(where, trace, 3 * (W - 1))


ALL_TO_ALL = Task(
    "1.5",
    "all_to_all",
    "01_collectives",
    (
        Subcheck("one rank", exchanges(runs.value_calls, "equal", (1,))),
        Subcheck(
            "two to four ranks, equal sizes", exchanges(runs.value_calls, "equal", SIZES), gate=True
        ),
        Subcheck("different sizes, some zero", exchanges(runs.more_calls, "ragged", (3,))),
        Subcheck("rows sent once, straight to their rank, unpadded", exchanges_cost(4), points=2),
        Subcheck(
            "all rows to one rank; other shapes and dtypes; x kept",
            exchanges(runs.edge_calls, "extreme", (5,)),
        ),
    ),
    forbid=FORBID,
    hints=hints_of("""
        deadlock: Every rank takes part in every step, also one that has no rows to give: the others
            wait for its sizes. A message may be empty; or both sides leave it out.
        call-mismatch: Sender and receiver disagree about the number of rows. How many rows rank s
            sends you stands in its send_sizes, not in yours: exchange the sizes first.
        row-width: The number of rows is right, and there is room for as many elements. A row has
            the shape x.shape[1:]: make room for rows of that shape.
        to-itself: A rank tries to send to itself. Its own rows stay: copy them, and
            start with step 1.
        error-alone: With one rank nothing is sent: the result is a copy of x.
        only-two-ranks: 1 - rank is the other rank for two ranks only. In step s, send to (rank + s)
            % size and receive from (rank - s) % size.
        only-powers-of-two: rank ^ s pairs the ranks for powers of two only. In step s, send to
            (rank + s) % size and receive from (rank - s) % size.
        no-modulo: An index has left a list. Peers wrap around: take them modulo group.size.
        no-tensor: Return one tensor: the received rows, torch.cat in the order of the ranks.
        padded: There are rows that nobody sent. Parts padded to one common size must be cut back to
            their own, or better, never padded.
        wrong-order: All rows are there, in another order: first those from rank 0, then from rank
            1, and so on, your own at your own number.
        own-rows-missing: The rows that a rank keeps for itself belong into the result too.
        own-part: These are your own rows. Rows for rank r go to rank r.
        rows-missing: Rows are missing. Are the pieces of x cut by send_sizes?
        equal-pieces: x was cut into equal pieces. send_sizes says how many rows go to each rank:
            x.split(send_sizes).
        changed-x: x belongs to the caller: receive into other tensors.
        result-changes-later: The result shares memory with x: copy the own rows too.
        root-in-the-middle: All rows go through one rank. Each pair of ranks can exchange directly.
        gathers-everything: Every rank receives all rows and picks its own. Send each row only to
            the rank that it is for.
        padded-traffic: All messages are as long as the longest. Exchange the sizes first, one
            number each, then send exactly those rows.
        table-of-sizes: All of send_sizes, or a whole table, goes to everybody. A rank needs one
            number from each of the others: how many rows come from there. Send only that, 8 bytes.
        too-much-traffic: Each row is sent once, besides W-1 sizes of 8 bytes.
        too-little-traffic: Each row for another rank is sent once.
        too-many-steps: The ranks wait for one another. In each step every rank sends to one and
            receives from another: exchange.
    """),
)


@checker(ALL_TO_ALL)
def check_all_to_all(fn, seed=None):
    """Points for `fn(x, group, send_sizes)`: the rows that all ranks sent to this one, by rank."""
