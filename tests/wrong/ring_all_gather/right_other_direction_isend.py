# verdict: passed
# points: 6
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone() if rank == r else x.new_empty(n) for rank, n in enumerate(sizes)]
    for step in range(W - 1):
        out, into = gathered[(r + step) % W], gathered[(r + step + 1) % W]
        handles = [group.irecv(into, (r + 1) % W), group.isend(out, (r - 1) % W)]
        for handle in handles:
            handle.wait()
    return gathered
