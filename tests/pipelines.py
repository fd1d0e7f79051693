"""What the tests of pipelines share: schedules, a model, a batch; PyTorch's own schedules; a trace
as a program.
"""

import torch
from torch.distributed import pipelining

from course_lib import schedule
from course_lib.model import Config, build
from course_lib.pipeline import token_loss

SIZES = {"dim": 8, "vocab": 11, "seq": 6, "heads": 2}
UNTIED, TIED = Config(**SIZES, layers=4), Config(**SIZES, layers=4, tied=True)
EIGHT = Config(**SIZES, layers=8)  # enough for two stages on each of four ranks
NAMES = ("naive", "gpipe", "one_f_one_b", "zb_h1", "zb_h2", "interleaved_1f1b", "looped_bfs",
         "interleaved_zb", "zb_v", "dualpipe", "dualpipe_v")
TORCH = {"gpipe": "ScheduleGPipe", "one_f_one_b": "Schedule1F1B",
         "interleaved_1f1b": "ScheduleInterleaved1F1B",
         "interleaved_zb": "ScheduleInterleavedZeroBubble", "zb_v": "ScheduleZBVZeroBubble"}


def made(name, p, m):
    """The schedule of that name, None where its builder has none for p and m."""
    try:
        return getattr(schedule, name)(p, m)
    except ValueError:
        return None


def cases(p, ms, names=NAMES):
    return {(name, m): plan for m in ms for name in names if (plan := made(name, p, m))}


def net_of(config):
    return build(config, seed=0).double()


def tokens_of(rows, steps=1):
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(11, (rows, 7), generator=generator) for _ in range(steps)]


def torch_pipeline(name, stages, m, group):
    """step(inputs, targets) -> this rank's part of the mean loss: PyTorch's schedule of that name
    on the same stages. Needs `run_ranks`, which has set up torch.distributed.
    """
    count = stages.placement.num_stages
    wrapped = [pipelining.PipelineStage(part, s, count, torch.device("cpu"))
               for s, part in stages.parts.items()]
    one = count == group.size and len(wrapped) == 1 and name in ("gpipe", "one_f_one_b")
    schedule = getattr(pipelining, TORCH[name])(wrapped[0] if one else wrapped, m,
                                                loss_fn=token_loss)

    def step(inputs, targets):
        losses = []
        given = [inputs] if 0 in stages.parts else []
        wanted = {"target": targets, "losses": losses} if count - 1 in stages.parts else {}
        schedule.step(*given, **wanted)
        return float(sum(loss.detach() for loss in losses)) / m

    return step


def program_rows(program, mark=None):
    """What two programs of a pipeline must agree on, event by event; from `mark` to the next one.

    Memory is left out, the pieces of one op are joined, requests are numbered from 0.
    """
    events = [e for e in program if e.kind not in ("alloc", "free")]
    if mark is not None:
        start = next(i for i, e in enumerate(events) if e.kind == "record" and e.event == mark)
        end = next(i for i, e in enumerate(events) if i > start and e.kind == "record")
        events = events[start + 1:end]
    first = min((r for e in events for r in e.requests), default=0)
    rows = []
    for e in events:
        row = (e.kind, e.peer, 0 if e.kind == "compute" else e.nbytes, e.dtype, e.label, e.channel,
               e.event, tuple(r - first for r in e.requests))
        if not (e.kind == "compute" and rows and rows[-1] == row):
            rows.append(row)
    return rows
