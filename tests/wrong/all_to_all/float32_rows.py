# verdict: wrong-dtype
# points: 4
# hint: about the dtype
# runs in: soak
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    pieces = x.split(send_sizes)
    received = [pieces[r]] * W
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        rows = group.exchange(torch.tensor(send_sizes[to]), to, torch.tensor(0), frm)
        received[frm] = torch.empty(rows.item(), *x.shape[1:])
        group.exchange(pieces[to], to, received[frm], frm)
    return torch.cat(received)
