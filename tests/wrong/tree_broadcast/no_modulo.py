# verdict: no-wrap
# points: 4
# hint: modulo group.size
# runs in: soak
def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    distance = 1
    while distance < W:
        if place < distance and place + distance < W:
            group.send(x, group.rank + distance)
        elif distance <= place < 2 * distance:
            group.recv(x, group.rank - distance)
        distance *= 2
    return x
