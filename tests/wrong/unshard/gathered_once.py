# verdict: hidden-copy
# points: 3
# hint: alive elsewhere
from course_lib.collectives import all_gather

CACHE = {}


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    key = id(shard)
    if key not in CACHE:
        CACHE[key] = (shard, all_gather(shard.detach(), group))
    for part, arrived in zip(flat.chunk(group.size), CACHE[key][1]):
        part.copy_(arrived)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
