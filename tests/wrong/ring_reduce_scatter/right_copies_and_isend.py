# verdict: passed
# points: 6
import torch


def ring_reduce_scatter(parts, group):
    r, W = group.rank, group.size
    sums = [part.clone() for part in parts]
    for step in range(W - 1):
        send, recv = (r - 1 - step) % W, (r - 2 - step) % W
        arrived = torch.empty_like(sums[recv])
        sending = group.isend(sums[send], (r + 1) % W)
        receiving = group.irecv(arrived, (r - 1) % W)
        receiving.wait()
        sums[recv] += arrived
        sending.wait()
    return sums[r]
