"""What the tests of data parallelism share: models, batches, and the single process to equal."""

import torch

from course_lib.model import Config, build, next_token_loss

CONFIG = Config(layers=2, dim=8, vocab=11, seq=6, heads=2)
STEPS = 5


def batches(world_size, per_rank=2):
    """The global batch of each step: tokens [world_size * per_rank, S+1]."""
    generator = torch.Generator().manual_seed(1)
    shape = (world_size * per_rank, CONFIG.seq + 1)
    return [torch.randint(CONFIG.vocab, shape, generator=generator) for _ in range(STEPS)]


def model():
    """In double precision: sums in another order then differ by less than the tests allow."""
    return build(CONFIG, seed=0).double()


def optimizer(name, parameters):
    # A large eps keeps Adam smooth where a gradient is zero but for rounding.
    return (torch.optim.SGD(parameters, lr=0.1) if name == "sgd"
            else torch.optim.Adam(parameters, lr=0.01, eps=1e-3))


def flat(parameters):
    return torch.cat([p.detach().flatten() for p in parameters]).clone()


def single_process(world_size, name, max_norm=None, accumulate=1):
    """Flat parameters after each step of one process that sees the whole batch."""
    net, after = model(), []
    step = optimizer(name, list(net.parameters()))
    for batch in batches(world_size, 2 * accumulate):
        next_token_loss(net, batch).backward()
        if max_norm:
            torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        step.step()
        step.zero_grad()
        after.append(flat(net.parameters()))
    return after


def assert_equal_after_each_step(results, reference):
    for rank, after in enumerate(results):
        for step, (got, want) in enumerate(zip(after, reference, strict=True)):
            torch.testing.assert_close(
                got, want, rtol=1e-9, atol=1e-11,
                msg=lambda text, r=rank, s=step: f"rank {r} step {s}: {text}")
