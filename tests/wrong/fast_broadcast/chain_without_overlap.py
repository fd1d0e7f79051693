# verdict: no-overlap
# points: 4
# hint: as soon as it is there
# runs in: soak
def fast_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    pieces = x.view(-1).tensor_split(8)
    for piece in pieces if place > 0 else []:
        group.recv(piece, (group.rank - 1) % W)
    for piece in pieces if place < W - 1 else []:
        group.send(piece, (group.rank + 1) % W)
    return x
