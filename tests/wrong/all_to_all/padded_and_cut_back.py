# verdict: padded-traffic
# points: 4
# hint: as long as the longest
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    sizes = [torch.tensor(send_sizes)] + [torch.tensor(send_sizes) for _ in range(W - 1)]
    for step in range(1, W):
        frm = (r - step) % W
        group.exchange(torch.tensor(send_sizes), (r + step) % W, sizes[frm], frm)
    sizes[r] = torch.tensor(send_sizes)
    room = x.new_zeros(W, int(torch.stack(sizes).max()), *x.shape[1:])
    for to, piece in enumerate(x.split(send_sizes)):
        room[to, : len(piece)] = piece
    received = room.clone()
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        group.exchange(room[to], to, received[frm], frm)
    return torch.cat([received[frm, : int(sizes[frm][r])] for frm in range(W)])
