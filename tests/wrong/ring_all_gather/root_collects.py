# verdict: root-in-the-middle
# points: 4
# hint: One rank collects
# runs in: soak
def ring_all_gather(x, group, sizes):
    gathered = [x.clone() if rank == group.rank else x.new_empty(n) for rank, n in enumerate(sizes)]
    if group.rank == 0:
        for frm in range(1, group.size):
            group.recv(gathered[frm], frm)
        for to in range(1, group.size):
            for part in gathered:
                group.send(part, to)
        return gathered
    group.send(x, 0)
    return [group.recv(part, 0) for part in gathered]
