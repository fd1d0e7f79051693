# verdict: padded
# points: 2
# hint: nobody sent
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    most, other = torch.tensor(max(send_sizes)), torch.tensor(0)
    for _ in range(W - 1):
        group.exchange(most.clone(), (r + 1) % W, other, (r - 1) % W)
        most = torch.maximum(other, torch.tensor(max(send_sizes)))
    room = x.new_zeros(W, int(most), *x.shape[1:])
    for to, piece in enumerate(x.split(send_sizes)):
        room[to, : len(piece)] = piece
    received = room.clone()
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        group.exchange(room[to], to, received[frm], frm)
    return received.flatten(0, 1)
