# verdict: root-in-the-middle
# points: 4
# hint: one rank
import torch


def all_reduce(x, group):
    if group.rank > 0:
        group.send(x, 0)
        return group.recv(x, 0)
    for frm in range(1, group.size):
        x += group.recv(torch.empty_like(x), frm)
    for to in range(1, group.size):
        group.send(x, to)
    return x
