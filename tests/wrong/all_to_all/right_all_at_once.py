# verdict: passed
# points: 6
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    others = [rank for rank in range(W) if rank != r]
    sizes = [torch.tensor([n]) for n in send_sizes]
    counts = [torch.tensor([n]) for n in send_sizes]
    handles = [group.irecv(counts[o], o) for o in others]
    handles += [group.isend(sizes[o], o) for o in others]
    for handle in handles:
        handle.wait()
    received = [x.new_empty(counts[rank].item(), *x.shape[1:]) for rank in range(W)]
    pieces = x.split(send_sizes)
    received[r] = pieces[r].clone()
    handles = [group.irecv(received[o], o) for o in others]
    handles += [group.isend(pieces[o], o) for o in others]
    for handle in handles:
        handle.wait()
    return torch.cat(received)
