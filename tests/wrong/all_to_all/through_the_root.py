# verdict: root-in-the-middle
# points: 4
# hint: through one rank
# runs in: soak
import torch


def all_to_all(x, group, send_sizes):
    W, sizes = group.size, torch.tensor(send_sizes)
    if group.rank > 0:
        group.send(sizes, 0)
        group.send(x, 0)
        rows = group.recv(torch.tensor(0), 0)
        return group.recv(x.new_empty(rows.item(), *x.shape[1:]), 0)
    tables = [x.split(send_sizes)]
    for frm in range(1, W):
        theirs = group.recv(torch.empty_like(sizes), frm).tolist()
        tables.append(group.recv(x.new_empty(sum(theirs), *x.shape[1:]), frm).split(theirs))
    for to in range(1, W):
        rows = torch.cat([pieces[to] for pieces in tables])
        group.send(torch.tensor(len(rows)), to)
        group.send(rows, to)
    return torch.cat([pieces[0] for pieces in tables])
