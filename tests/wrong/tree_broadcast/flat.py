# verdict: root-sends-to-all
# points: 4
# hint: flat broadcast
def tree_broadcast(x, group, root=0):
    if group.rank == root:
        for to in range(group.size):
            if to != root:
                group.send(x, to)
    else:
        group.recv(x, root)
    return x
