# verdict: passed
# points: 6
def ring_reduce_scatter(parts, group):
    raise NotImplementedError("Task 1.2")


def ring_all_gather(x, group, sizes):
    raise NotImplementedError("Task 1.3")


def all_reduce(x, group):
    chunks = x.view(-1).tensor_split(group.size)
    mine = ring_reduce_scatter(list(chunks), group)
    for chunk, total in zip(chunks, ring_all_gather(mine, group, [c.numel() for c in chunks])):
        chunk.copy_(total)
    return x
