# verdict: wrong-value
# points: 4
# hint: which rank holds which
import torch


def fast_broadcast(x, group, root=0):
    W, r = group.size, group.rank
    chunks = x.view(-1).tensor_split(W)
    if r == root:
        for to in range(1, W):
            group.send(chunks[to], (root + to) % W)
    else:
        group.recv(chunks[(r - root) % W], root)
    for step in range(W - 1):
        out, into = chunks[(r - step) % W], chunks[(r - step - 1) % W]
        into = torch.empty_like(into) if r == root else into
        group.exchange(out, (r + 1) % W, into, (r - 1) % W)
    return x
