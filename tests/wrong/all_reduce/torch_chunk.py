# verdict: too-few-chunks
# points: 4
# hint: tensor_split
# runs in: soak
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    partial = parts[(r - 1) % W].clone()
    for step in range(W - 1):
        own = parts[(r - step - 2) % W]
        arrived = group.exchange(partial, (r + 1) % W, torch.empty_like(own), (r - 1) % W)
        partial = arrived + own
    return partial


def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.new_empty(n) for n in sizes]
    gathered[r].copy_(x)
    for step in range(W - 1):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return gathered


def all_reduce(x, group):
    chunks = x.view(-1).chunk(group.size)
    mine = ring_reduce_scatter(list(chunks), group)
    for chunk, total in zip(chunks, ring_all_gather(mine, group, [c.numel() for c in chunks])):
        chunk.copy_(total)
    return x
