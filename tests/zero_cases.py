"""What the tests of ZeRO share: every stage, by name, trained for some steps on the small GPT."""

import gc
from dataclasses import dataclass, field

from training import batches, flat, model, optimizer

from course_lib.model import next_token_loss
from course_lib.trace import SENDS
from course_lib.zero import Zero1, Zero1ByAllReduce, Zero2, Zero3

STAGES = {"1": Zero1, "1 by all-reduce": Zero1ByAllReduce, "2": Zero2, "3": Zero3,
          "3 ahead": lambda *args: Zero3(*args, prefetch=True)}


def make(stage, net, group, name="adam"):
    return STAGES[stage](net, group, lambda shards: optimizer(name, shards))


def train(group, stage, name="adam", max_norm=None, accumulate=1, net=None, look=True, steps=5):
    """Flat parameters after each step; with look=False nothing is gathered to look at them."""
    net, after = model() if net is None else net, []
    zero = make(stage, net, group, name)
    group.mark(f"{stage}: ready")
    for batch in batches(group.size, 2 * accumulate)[:steps]:
        for part in batch.chunk(group.size)[group.rank].chunk(accumulate):
            loss = next_token_loss(net, part) / accumulate
            loss.backward()
            del loss
        group.mark(f"{stage}: after backward")
        zero.step(max_norm)
        if look:
            after.append(whole(zero, net))
    group.mark(f"{stage}: done")
    return after


def train_all(group, make_model=model, **kwargs):
    """Two steps in every stage, one after the other: one trace for all."""
    for stage in STAGES:
        net = make_model()
        train(group, stage, net=net, look=False, steps=2, **kwargs)
        for parameter in net.parameters():  # torch's hooks would keep their units for ever
            parameter._post_accumulate_grad_hooks.clear()
        del net, parameter
        gc.collect()


@dataclass
class Window:
    """What a rank held and sent in the steps of one stage; construction is not part of it."""

    resident: dict = field(default_factory=dict)  # after the last backward
    peak: dict = field(default_factory=dict)
    total: int = 0  # most bytes of all categories together
    sent: int = 0

    @classmethod
    def of(cls, trace, stage, rank=0):
        times = {e.event: e.start for e in trace.program(rank) if e.kind == "record"}
        began, ended = times[f"{stage}: ready"], times[f"{stage}: done"]
        curve = [held for t, held in trace.held_bytes(rank) if began < t < ended]
        held = trace.held_at(rank, f"{stage}: after backward")
        return cls({kind: held[kind] for kind in ("parameter", "gradient", "optimizer")},
                   {kind: max(held[kind] for held in curve) for kind in curve[0]},
                   max(sum(held.values()) for held in curve),
                   sum(e.nbytes for e in trace.events(rank)
                       if e.kind in SENDS and began < e.start < ended))


def whole(zero, net):
    """All parameters in one vector, gathered for the look where they are sharded."""
    gathered = zero.units if isinstance(zero, Zero3) else []
    for unit in gathered:
        unit.unshard()
    values = flat(net.parameters())
    for unit in gathered:
        unit.release()
    return values
