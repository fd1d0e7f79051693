# verdict: root-in-the-middle
# points: 4
# hint: One rank does all the work
import torch


def ring_reduce_scatter(parts, group):
    if group.rank > 0:
        for part in parts:
            group.send(part, 0)
        return group.recv(torch.empty_like(parts[group.rank]), 0)
    total = [part.clone() for part in parts]
    for frm in range(1, group.size):
        for part in total:
            part += group.recv(torch.empty_like(part), frm)
    for to in range(1, group.size):
        group.send(total[to], to)
    return total[0]
