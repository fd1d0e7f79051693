# verdict: wrong-root
# points: 0
# hint: before it has received
# runs in: soak
def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    distance = 1
    while distance < W:
        distance *= 2
    handles = []
    while distance > 1:
        distance //= 2
        if place % (2 * distance) == 0 and place + distance < W:
            handles.append(group.isend(x.clone(), (group.rank + distance) % W))
    if place:
        handles.append(group.irecv(x, (group.rank - (place & -place)) % W))
    for handle in handles:
        handle.wait()
    return x
