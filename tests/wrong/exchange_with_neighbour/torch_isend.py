# verdict: forbidden
# points: 0
# hint: yourself
# runs in: soak
import torch


def exchange_with_neighbour(x, group):
    import torch.distributed as dist

    if group.size == 1:
        return x
    received = torch.empty_like(x)
    handle = dist.isend(x, (group.rank + 1) % group.size)
    dist.recv(received, (group.rank - 1) % group.size)
    handle.wait()
    return received
