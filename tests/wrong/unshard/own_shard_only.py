# verdict: own-shard
# points: 0
# hint: list of all ranks
def unshard(flat, shard, group):
    storage = flat.untyped_storage()
    storage.resize_(flat.numel() * flat.element_size())
    group.resized(flat)
    flat.zero_()
    flat.chunk(group.size)[group.rank].copy_(shard.detach())

    def reshard():
        storage.resize_(0)
        group.resized(flat)

    return reshard
