# verdict: not-freed
# points: 0
# hint: Overwriting frees nothing
from course_lib.collectives import all_gather


def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    for part, arrived in zip(flat.chunk(group.size), all_gather(shard.detach(), group)):
        part.copy_(arrived)

    def reshard():
        flat.zero_()
        group.resized(flat)

    return reshard
