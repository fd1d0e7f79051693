# verdict: changed-x
# points: 5
# hint: belongs to the caller
# runs in: soak
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone() if rank == r else x.new_empty(n) for rank, n in enumerate(sizes)]
    for step in range(W - 1):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
        if len(x) == len(into):
            x.copy_(into)
    return gathered
