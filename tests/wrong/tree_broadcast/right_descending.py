# verdict: passed
# points: 6
def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    distance = 1 << max(0, (W - 1).bit_length() - 1)
    while distance:
        if place % (2 * distance) == 0 and place + distance < W:
            group.send(x, (group.rank + distance) % W)
        elif place % (2 * distance) == distance:
            group.recv(x, (group.rank - distance) % W)
        distance //= 2
    return x
