# verdict: passed
# points: 5
from course_lib.collectives import broadcast


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    flat.chunk(group.size)[group.rank].copy_(shard.detach())
    for root, part in enumerate(flat.chunk(group.size)):
        broadcast(part, group, root)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
