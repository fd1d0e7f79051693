# verdict: wrong-root
# points: 4
# hint: count places from the root
# runs in: soak
import torch


def fast_broadcast(x, group, root=0):
    root, W, place = 0, group.size, group.rank
    chunks = x.view(-1).tensor_split(W)
    if place == 0:
        for to in range(1, W):
            group.send(chunks[to], (root + to) % W)
    else:
        group.recv(chunks[place], root)
    for step in range(W - 1):
        out, into = chunks[(place - step) % W], chunks[(place - step - 1) % W]
        into = torch.empty_like(into) if place == 0 else into
        group.exchange(out, (group.rank + 1) % W, into, (group.rank - 1) % W)
    return x
