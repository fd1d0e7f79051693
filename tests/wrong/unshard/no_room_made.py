# verdict: still-empty
# points: 0
# hint: First make room
from course_lib.collectives import all_gather


def unshard(flat, shard, group):
    for part, arrived in zip(flat.chunk(group.size), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    def reshard():
        flat.untyped_storage().resize_(0)
        group.resized(flat)

    return reshard
