"""What the tests of pipelines share: PyTorch's own schedules, and a trace as its program."""

import torch
from torch.distributed import pipelining

from course_lib.pipeline import token_loss

TORCH = {"gpipe": "ScheduleGPipe", "one_f_one_b": "Schedule1F1B",
         "interleaved_1f1b": "ScheduleInterleaved1F1B",
         "interleaved_zb": "ScheduleInterleavedZeroBubble", "zb_v": "ScheduleZBVZeroBubble"}


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
