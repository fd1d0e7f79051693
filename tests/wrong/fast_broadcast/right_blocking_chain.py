# verdict: passed
# points: 6
# runs in: soak
def fast_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    right, left = (group.rank + 1) % W, (group.rank - 1) % W
    pieces = x.view(-1).tensor_split(8)
    if place > 0:
        group.recv(pieces[0], left)
    for piece, following in zip(pieces, [*pieces[1:], None]):
        if 0 < place < W - 1 and following is not None:
            group.exchange(piece, right, following, left)
        elif place == 0 and W > 1 or following is None and 0 < place < W - 1:
            group.send(piece, right)
        elif place == W - 1 and place > 0 and following is not None:
            group.recv(following, left)
    return x
