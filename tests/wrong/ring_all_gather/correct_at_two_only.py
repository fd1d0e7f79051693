# verdict: wrong-order
# points: 0
# hint: In step s
def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered, arrived = [x.clone() for _ in sizes], x
    for step in range(W - 1):
        into = x.new_empty(sizes[(r - step - 1) % W])
        arrived = group.exchange(arrived, (r + 1) % W, into, (r - 1) % W)
        gathered[(r + step + 1) % W] = arrived
    return gathered
