"""Our data parallelism and ZeRO give what PyTorch's give on the same inputs, after every step."""

import pytest
import torch
from training import batches, model, optimizer
from zero_cases import train as train_zero

from course_lib import run_ranks
from course_lib.data_parallel import Overlap
from course_lib.model import next_token_loss

SAME = {"ddp": "ddp", "zero-1": "1", "fully_shard 2": "2", "fully_shard 3": "3 ahead"}


def theirs(group, how):
    from torch_parallel import torch_ddp, torch_fsdp, torch_zero1

    net, after = model(), []
    if how == "ddp":
        called, step = torch_ddp(net, lambda parameters: optimizer("adam", parameters))
    elif how == "zero-1":
        called, step = torch_zero1(net, torch.optim.Adam, lr=0.01, eps=1e-3)
    else:
        called, step = torch_fsdp(net, lambda parameters: optimizer("adam", parameters),
                                  int(how[-1]))
    for batch in batches(group.size):
        next_token_loss(called, batch.chunk(group.size)[group.rank]).backward()
        step.step()
        step.zero_grad()
        after.append(torch.cat([whole(p).flatten() for p in net.parameters()]))
    return after


def whole(parameter):
    parameter = parameter.detach()
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter.clone()


def ours(group, how):
    if how != "ddp":
        return train_zero(group, how)
    net, after = model(), []
    overlap, step = Overlap(net, group, bucket_bytes=2_000), optimizer("adam", net.parameters())
    for batch in batches(group.size):
        next_token_loss(net, batch.chunk(group.size)[group.rank]).backward()
        overlap.finish()
        step.step()
        overlap.zero()
        after.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    return after


@pytest.mark.parametrize("world_size", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_same_weights_as_torch(world_size):
    def both(group):
        return {how: (theirs(group, how), ours(group, SAME[how])) for how in SAME}

    for rank, got in enumerate(run_ranks(both, world_size, record=False).results):
        for how in SAME:
            for step, (want, found) in enumerate(zip(*got[how], strict=True)):
                torch.testing.assert_close(
                    found, want, rtol=1e-9, atol=1e-11,
                    msg=lambda m, r=rank, s=step, h=how: f"{h}, rank {r}, step {s}: {m}")
