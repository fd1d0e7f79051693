# verdict: not-reached
# points: 0
# hint: never received
# runs in: soak
def tree_broadcast(x, group, root=0):
    if group.rank == root and group.size > 1:
        group.send(x, (root + 1) % group.size)
    elif group.rank == (root + 1) % group.size:
        group.recv(x, root)
    return x
