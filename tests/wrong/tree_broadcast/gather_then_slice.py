# verdict: too-much-traffic
# points: 4
# hint: once
import torch


def tree_broadcast(x, group, root=0):
    W = group.size
    held = [torch.empty_like(x) for _ in range(W)]
    held[group.rank] = x.clone()
    for step in range(W - 1):
        out, into = held[(group.rank - step) % W], held[(group.rank - step - 1) % W]
        group.exchange(out, (group.rank + 1) % W, into, (group.rank - 1) % W)
    return x.copy_(held[root])
