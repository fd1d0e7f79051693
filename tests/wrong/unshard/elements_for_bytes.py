# verdict: too-little-room
# points: 0
# hint: bytes, not elements
from course_lib.collectives import all_gather


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel())
    group.resized(flat)
    for part, arrived in zip(flat.chunk(group.size), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
