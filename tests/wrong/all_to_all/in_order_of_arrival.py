# verdict: wrong-order
# points: 0
# hint: your own at your own number
# runs in: soak
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    pieces = x.split(send_sizes)
    received = [pieces[r]]
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        rows = group.exchange(torch.tensor(send_sizes[to]), to, torch.tensor(0), frm)
        received.append(x.new_empty(rows.item(), *x.shape[1:]))
        group.exchange(pieces[to], to, received[-1], frm)
    return torch.cat(received)
