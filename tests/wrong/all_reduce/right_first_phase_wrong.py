# verdict: passed
# points: 6
# runs in: soak
def ring_reduce_scatter(parts, group):
    return parts[group.rank]


def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.new_empty(n) for n in sizes]
    gathered[r].copy_(x)
    for step in range(W - 1):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return gathered


def all_reduce(x, group):
    chunks = x.view(-1).tensor_split(group.size)
    mine = ring_reduce_scatter(list(chunks), group)
    for chunk, total in zip(chunks, ring_all_gather(mine, group, [c.numel() for c in chunks])):
        chunk.copy_(total)
    return x
