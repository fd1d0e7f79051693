# verdict: passed
# points: 6
# runs in: soak
def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    begun = 1 << place.bit_length()  # from here on this place sends
    if place:
        group.recv(x, (root + place - begun // 2) % W)
    else:
        begun = 1
    sends = []
    while place + begun < W:
        sends.append(group.isend(x, (root + place + begun) % W))
        begun *= 2
    for send in sends:
        send.wait()
    return x
