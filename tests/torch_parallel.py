"""PyTorch's own data parallelism on the same model, as the tests and the benchmark compare it."""

import torch
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def torch_ddp(net, make_optimizer):
    """(model to call, optimizer): gradients all-reduced in buckets."""
    return DistributedDataParallel(net), make_optimizer(net.parameters())


def torch_zero1(net, optimizer_class, **options):
    """The same, each rank updating the parameters that are its."""
    wrapped = DistributedDataParallel(net)
    return wrapped, ZeroRedundancyOptimizer(net.parameters(), optimizer_class, **options)


def torch_fsdp(net, make_optimizer, stage):
    """fully_shard unit by unit. Stage 2: parameters stay after the forward pass; 3: they go."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for unit in net.units:
        fully_shard(unit, mesh=mesh, reshard_after_forward=stage == 3)
    fully_shard(net, mesh=mesh, reshard_after_forward=stage == 3)
    return net, make_optimizer(net.parameters())
