"""The words of a pipeline schedule: ops, where stages live, and what an op needs.

A schedule is data: one list of `Op` per rank, in the order in which the rank runs them. Everything
else reads that list: `validate` judges it, `time_schedule` times it, views draw it, the pipeline
engine runs it. Sends and receives are derived from `needs`; no builder writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

KINDS = "FBIW"


class Op(NamedTuple):
    """One computation: of a stage of the model, on one micro-batch. Prints as 2F0, as in PyTorch.

    F forward; B full backward; or its halves I, the gradient of the stage's input (zero-bubble
    papers: B), and W, the gradient of its weights. A B counts as an I and a W that end together.
    """

    stage: int
    kind: str
    mb: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.mb}"

    __repr__ = __str__


def needs(op: Op, num_stages: int) -> list[Op]:
    """Ops that must end before `op` starts, other than those that these need themselves.

    F: the stage before. B, I: the stage after, or the last stage's own F (the loss). W: its own I.
    Where the stage after has an I for a B, or a B for an I, that one counts: see `output`.
    """
    stage, kind, mb = op
    if kind == "F":
        return [Op(stage - 1, "F", mb)] if stage > 0 else []
    if kind == "W":
        return [Op(stage, "I", mb)]
    last = stage == num_stages - 1
    return [Op(stage, "F", mb) if last else Op(stage + 1, kind, mb)]


def output(op: Op) -> Op:
    """The op by the name of what it makes for others: a B and an I make the same gradient."""
    return Op(op.stage, "I", op.mb) if op.kind == "B" else op


@dataclass(frozen=True)
class Placement:
    """Which rank holds which stage; for two directions also depending on the micro-batch.

    ============== =================================================================
    linear         stage s on rank s
    interleaved    stage s on rank s % ranks: v stages a rank, "virtual stages"
    v              out and back: rank r holds r and 2 * ranks - 1 - r
    bidirectional  stage s on rank s for the first half of the micro-batches, on
                   rank ranks - 1 - s for the second: every rank holds two stages
    ============== =================================================================
    """

    name: str
    ranks: int
    num_stages: int
    num_microbatches: int = 0  # of the bidirectional placement only

    def rank(self, stage: int, mb: int = 0) -> int:
        """The rank that runs this stage for this micro-batch."""
        if self.name == "bidirectional":
            return stage if 2 * mb < self.num_microbatches else self.ranks - 1 - stage
        if self.name == "v" and stage >= self.ranks:
            return self.num_stages - 1 - stage
        return stage % self.ranks

    def stages(self, rank: int) -> list[int]:
        """The stages that the rank holds, in the order of the model."""
        mbs = {0, max(0, self.num_microbatches - 1)}
        return [s for s in range(self.num_stages) if rank in {self.rank(s, mb) for mb in mbs}]


def linear(p: int) -> Placement:
    """One stage a rank."""
    return Placement("linear", p, p)


def interleaved(p: int, v: int) -> Placement:
    """v stages a rank, dealt out like cards."""
    return Placement("interleaved", p, p * v)


def v_shape(p: int) -> Placement:
    """Two stages a rank, out and back: the first and the last stage share rank 0."""
    return Placement("v", p, 2 * p)


def bidirectional(p: int, m: int) -> Placement:
    """Half of the m micro-batches run from rank 0 to p-1, the others from p-1 to 0; weights twice.
    """
    return Placement("bidirectional", p, p, m)


class Schedule(list):
    """One list of Op per rank, plus where the stages live and which pairs of ops overlap.

    `overlapped` maps an F to the B that is computed together with it (DualPipe), where the two
    stand next to each other in a rank's list. A plain list of lists is as good wherever a schedule
    is expected: see `as_schedule`.
    """

    def __init__(self, ranks: Iterable[Iterable[Op]], placement: Placement,
                 overlapped: dict[Op, Op] | None = None) -> None:
        super().__init__(list(ops) for ops in ranks)
        self.placement, self.overlapped = placement, overlapped or {}

    @property
    def num_microbatches(self) -> int:
        """One more than the highest micro-batch that is mentioned."""
        return 1 + max((op.mb for ops in self for op in ops), default=-1)

    def steps(self, rank: int) -> list[tuple[Op, ...]]:
        """The rank's ops, each alone or with the one that it overlaps."""
        steps: list[tuple[Op, ...]] = []
        for op in self[rank]:
            if steps and len(steps[-1]) == 1 and self.overlapped.get(steps[-1][0]) == op:
                steps[-1] += (op,)
            else:
                steps.append((op,))
        return steps


def as_schedule(schedule, placement: Placement | None = None) -> Schedule:
    """The schedule with its placement: the given one, its own, or else the first one that fits.

    Tried in turn: linear, interleaved, v, bidirectional; when none has every op where it stands,
    linear (one stage a rank) or interleaved (more). ValueError where an entry is not an Op.
    """
    if isinstance(schedule, Schedule) and placement in (None, schedule.placement):
        return schedule
    ranks = [[_as_op(entry, rank) for entry in ops] for rank, ops in enumerate(schedule)]
    p = len(ranks)
    if not p:
        raise ValueError("schedule=[]: must have one list of ops per rank, at least one")
    overlapped = getattr(schedule, "overlapped", None)
    if placement is None:
        stages = 1 + max((op.stage for ops in ranks for op in ops), default=0)
        m = 1 + max((op.mb for ops in ranks for op in ops), default=0)
        v = max(1, -(-stages // p))
        tried = [linear(p), bidirectional(p, m)] if v == 1 else [interleaved(p, v), v_shape(p)]
        fits = [t for t in tried if t.num_stages >= stages and all(
            t.rank(op.stage, op.mb) == r for r, ops in enumerate(ranks) for op in ops)]
        placement = (fits or tried)[0]
    return Schedule(ranks, placement, overlapped)


def _as_op(entry, rank: int) -> Op:
    fields = tuple(entry) if isinstance(entry, (tuple, list)) else ()
    if len(fields) == 3 and isinstance(fields[0], int) and isinstance(fields[2], int):
        if isinstance(fields[1], str) and min(fields[0], fields[2]) >= 0:
            return Op(*fields)
    raise ValueError(f"schedule[{rank}] contains {entry!r}: must be an Op(stage, kind, mb), stage "
                     "and mb integers of at least 0")
