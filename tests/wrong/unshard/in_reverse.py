# verdict: wrong-order
# points: 0
# hint: another order
from course_lib.collectives import all_gather


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    for part, arrived in zip(reversed(flat.chunk(group.size)), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
