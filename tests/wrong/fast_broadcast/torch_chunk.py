# verdict: no-modulo
# points: 4
# hint: may make fewer
# runs in: soak
import torch


def fast_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    chunks = x.view(-1).chunk(W)
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
