# verdict: hidden-copy
# points: 4
# hint: alive elsewhere
from course_lib.collectives import all_gather

KEPT = []


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    for part, arrived in zip(flat.chunk(group.size), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    KEPT.append(flat.detach().clone())

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
