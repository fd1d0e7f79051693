# verdict: not-a-ring
# points: 4
# hint: handed on
# runs in: soak
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone() if rank == r else x.new_empty(n) for rank, n in enumerate(sizes)]
    for step in range(1, W):
        frm = (r - step) % W
        group.exchange(x, (r + step) % W, gathered[frm], frm)
    return gathered
