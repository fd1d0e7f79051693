# verdict: passed
# points: 6
# runs in: soak
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.new_empty(n) for n in sizes]
    gathered[r].copy_(x)
    for step in range(W - 1):
        out, into = gathered[(r - step) % W], gathered[(r - step - 1) % W]
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return gathered
