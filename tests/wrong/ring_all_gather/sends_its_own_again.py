# verdict: wrong-order
# points: 0
# hint: In step s
# runs in: soak
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone() if rank == r else x.new_empty(n) for rank, n in enumerate(sizes)]
    for step in range(W - 1):
        group.exchange(x, (r + 1) % W, gathered[(r - step - 1) % W], (r - 1) % W)
    return gathered
