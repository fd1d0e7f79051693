# verdict: table-of-sizes
# points: 4
# hint: Send only that
# runs in: soak
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    pieces = x.split(send_sizes)
    received = [pieces[r]] * W
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        theirs = group.exchange(torch.tensor(send_sizes), to, torch.tensor([0] * W), frm)
        received[frm] = x.new_empty(int(theirs[r]), *x.shape[1:])
        group.exchange(pieces[to], to, received[frm], frm)
    return torch.cat(received)
