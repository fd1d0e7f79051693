# verdict: result-changes-later
# points: 5
# hint: of its own
# runs in: soak
import torch

BUFFERS = {}


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    room = BUFFERS.setdefault(tuple(p.shape for p in parts), [torch.empty_like(p) for p in parts])
    for mine, part in zip(room, parts):
        mine.copy_(part)
    for step in range(W - 1):
        send, recv = (r - step - 1) % W, (r - step - 2) % W
        arrived = torch.empty_like(room[recv])
        room[recv] += group.exchange(room[send], (r + 1) % W, arrived, (r - 1) % W)
    return room[r]
