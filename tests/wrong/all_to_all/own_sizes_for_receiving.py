# verdict: call-mismatch
# points: 2
# hint: exchange the sizes first
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    pieces = x.split(send_sizes)
    received = [torch.empty_like(piece) for piece in pieces]
    received[r] = pieces[r]
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        group.exchange(pieces[to], to, received[frm], frm)
    return torch.cat(received)
