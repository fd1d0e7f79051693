# verdict: wrong-root
# points: 4
# hint: count places from the root
def tree_broadcast(x, group, root=0):
    W, rank = group.size, group.rank
    distance = 1
    while distance < W:
        if rank < distance and rank + distance < W:
            group.send(x, rank + distance)
        elif distance <= rank < 2 * distance:
            group.recv(x, rank - distance)
        distance *= 2
    return x
