# verdict: passed
# points: 5
import torch


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    parts, r, W = list(torch.empty_like(flat).chunk(group.size)), group.rank, group.size
    parts[r].copy_(shard.detach())
    for step in range(W - 1):
        out, into = parts[(r - step) % W], parts[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    flat.copy_(torch.cat(parts))

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
