# verdict: passed
# points: 6
def fast_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    right, left = (group.rank + 1) % W, (group.rank - 1) % W
    pieces = [piece for piece in x.view(-1).tensor_split(16) if piece.numel()]
    arriving = [group.irecv(piece, left) for piece in pieces] if place > 0 else []
    leaving = []
    for number, piece in enumerate(pieces):
        if place > 0:
            arriving[number].wait()
        if place < W - 1:
            leaving.append(group.isend(piece, right))
    for handle in leaving:
        handle.wait()
    return x
