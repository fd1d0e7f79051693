# verdict: not-in-place
# points: 0
# hint: into x itself
import torch


def tree_broadcast(x, group, root=0):
    W, place = group.size, (group.rank - root) % group.size
    distance, mine = 1, x
    while distance < W:
        if place < distance and place + distance < W:
            group.send(mine, (group.rank + distance) % W)
        elif distance <= place < 2 * distance:
            mine = group.recv(torch.empty_like(x), (group.rank - distance) % W)
        distance *= 2
    return mine
