# verdict: gathers-everything
# points: 4
# hint: not all that you have
import torch


def ring_all_gather(x, group, sizes):
    r, W = group.rank, group.size
    gathered = [x.clone() if rank == r else x.new_zeros(n) for rank, n in enumerate(sizes)]
    for _ in range(W - 1):
        arrived = torch.empty(sum(sizes), dtype=x.dtype)
        group.exchange(torch.cat(gathered), (r + 1) % W, arrived, (r - 1) % W)
        gathered = [own if rank == r else part
                    for rank, (own, part) in enumerate(zip(gathered, arrived.split(sizes)))]
    return gathered
