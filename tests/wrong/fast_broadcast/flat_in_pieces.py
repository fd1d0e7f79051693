# verdict: root-sends-to-all
# points: 4
# hint: among themselves
# runs in: soak
def fast_broadcast(x, group, root=0):
    for piece in x.view(-1).tensor_split(group.size):
        if group.rank == root:
            for to in range(group.size):
                if to != root:
                    group.send(piece, to)
        else:
            group.recv(piece, root)
    return x
