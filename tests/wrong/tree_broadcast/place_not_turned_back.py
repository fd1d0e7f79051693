# verdict: to-itself
# points: 4
# hint: turn them back
# runs in: soak
def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    distance = 1
    while distance < W:
        if place < distance and place + distance < W:
            group.send(x, (place + distance) % W)
        elif distance <= place < 2 * distance:
            group.recv(x, (place - distance) % W)
        distance *= 2
    return x
