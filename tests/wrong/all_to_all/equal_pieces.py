# verdict: equal-pieces
# points: 2
# hint: send_sizes says
# runs in: soak
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    pieces = x.tensor_split(W)
    received = [pieces[r]] * W
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        rows = group.exchange(torch.tensor(len(pieces[to])), to, torch.tensor(0), frm)
        received[frm] = x.new_empty(rows.item(), *x.shape[1:])
        group.exchange(pieces[to], to, received[frm], frm)
    return torch.cat(received)
