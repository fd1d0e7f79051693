# verdict: phase-missing
# points: 0
# hint: all-gather of the chunks
# runs in: soak
def fast_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    chunks = x.view(-1).tensor_split(W)
    if place == 0:
        for to in range(1, W):
            group.send(chunks[to], (root + to) % W)
    else:
        group.recv(chunks[place], root)
    return x
