# verdict: chain
# points: 4
# hint: go on sending
# runs in: soak
def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    if place > 0:
        group.recv(x, (group.rank - 1) % W)
    if place < W - 1:
        group.send(x, (group.rank + 1) % W)
    return x
