# verdict: forbidden
# points: 0
# hint: all_gather of course_lib.collectives
from course_lib.zero_units import all_gather_into


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    flat.chunk(group.size)[group.rank].copy_(shard.detach())
    all_gather_into(flat, group)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
