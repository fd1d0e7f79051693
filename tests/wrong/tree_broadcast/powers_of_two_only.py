# verdict: only-powers-of-two
# points: 0
# hint: only when place + distance
def tree_broadcast(x, group, root=0):
    distance = 1
    while distance < group.size:
        partner = group.rank ^ distance
        if group.rank < distance:
            group.send(x, partner)
        elif group.rank < 2 * distance:
            group.recv(x, partner)
        distance *= 2
    return x
