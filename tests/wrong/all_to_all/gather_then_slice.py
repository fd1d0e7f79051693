# verdict: gathers-everything
# points: 4
# hint: picks its own
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    result = [None] * W
    sizes, rows = torch.tensor(send_sizes), x.clone()
    for step in range(W):
        result[(r - step) % W] = rows.split(sizes.tolist())[r]
        if step < W - 1:
            arrived = torch.empty_like(sizes)
            group.exchange(sizes, (r + 1) % W, arrived, (r - 1) % W)
            into = x.new_empty(int(arrived.sum()), *x.shape[1:])
            rows = group.exchange(rows, (r + 1) % W, into, (r - 1) % W)
            sizes = arrived
    return torch.cat(result)
