# verdict: entry-missing
# points: 0
# hint: does not show there
# runs in: soak
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone() if rank == r else x.new_zeros(n) for rank, n in enumerate(sizes)]
    for step in range(min(W - 1, max(1, W - 2))):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return gathered
