# verdict: too-much-traffic
# points: 3
# hint: sends more
from course_lib.collectives import ring_all_reduce


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    flat.zero_()
    flat.chunk(group.size)[group.rank].copy_(shard.detach())
    ring_all_reduce(flat, group)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
