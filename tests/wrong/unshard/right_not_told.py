# verdict: passed
# points: 5
from course_lib.collectives import all_gather


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    for part, arrived in zip(flat.chunk(group.size), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    def reshard():
        flat.untyped_storage().resize_(0)

    return reshard
