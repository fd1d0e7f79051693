# verdict: too-many-steps
# points: 4
# hint: largest subtree first
# runs in: soak
def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    if place:
        low = place & -place
        group.recv(x, (group.rank - low) % W)
    else:
        low = 1 << (W - 1).bit_length()
    distance = 1
    while distance < low:
        if place + distance < W:
            group.send(x, (group.rank + distance) % W)
        distance *= 2
    return x
