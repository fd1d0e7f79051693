# verdict: wrong-order
# points: 0
# hint: not the r-th that arrives
# runs in: soak
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone()]
    for step in range(W - 1):
        into = x.new_empty(sizes[(r - step - 1) % W])
        gathered.append(group.exchange(gathered[-1], (r + 1) % W, into, (r - 1) % W))
    return gathered
