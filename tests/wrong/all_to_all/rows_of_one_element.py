# verdict: row-width
# points: 0
# hint: the shape x.shape[1:]
# runs in: soak
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    pieces = x.split(send_sizes)
    received = [pieces[r]] * W
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        rows = group.exchange(torch.tensor(send_sizes[to]), to, torch.tensor(0), frm)
        received[frm] = x.new_empty(rows.item())
        group.exchange(pieces[to], to, received[frm], frm)
    return torch.cat(received)
