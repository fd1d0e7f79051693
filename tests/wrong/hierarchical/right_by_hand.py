# verdict: passed
# points: 6
import torch


def hierarchical(x, group, G):
    r, W = group.rank, group.size
    first, place = r // G * G, r % G
    chunks = x.view(-1).tensor_split(G)
    for step in range(1, G):
        to, frm = first + (place + step) % G, first + (place - step) % G
        arrived = torch.empty_like(chunks[place])
        chunks[place].add_(group.exchange(chunks[to - first], to, arrived, frm))
    mine, K = chunks[place], W // G
    parts = mine.tensor_split(K)
    at = r // G
    for step in range(K - 1):
        out, into = parts[(at - step - 1) % K], parts[(at - step - 2) % K]
        into += group.exchange(out, (r + G) % W, torch.empty_like(into), (r - G) % W)
    for step in range(K - 1):
        out, into = parts[(at - step) % K], parts[(at - step - 1) % K]
        group.exchange(out, (r + G) % W, into, (r - G) % W)
    for step in range(1, G):
        to, frm = first + (place + step) % G, first + (place - step) % G
        group.exchange(mine, to, chunks[frm - first], frm)
    return x
