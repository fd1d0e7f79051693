# verdict: only-powers-of-two
# points: 0
# hint: powers of two only
import torch


def all_to_all(x, group, send_sizes):
    r, pieces = group.rank, x.split(send_sizes)
    received = [pieces[r]] * group.size
    for step in range(1, group.size):
        other = r ^ step
        rows = group.exchange(torch.tensor(send_sizes[other]), other, torch.tensor(0), other)
        received[other] = x.new_empty(rows.item(), *x.shape[1:])
        group.exchange(pieces[other], other, received[other], other)
    return torch.cat(received)
