# verdict: passed
# points: 6
# runs in: soak
import torch


def all_to_all(x, group, send_sizes):
    r, W = group.rank, group.size
    counts = list(send_sizes)
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        rows = group.exchange(torch.tensor(send_sizes[to]), to, torch.tensor(0), frm)
        counts[frm] = rows.item()
    pieces, result = x.split(send_sizes), x.new_empty(sum(counts), *x.shape[1:])
    places = result.split(counts)
    places[r].copy_(pieces[r])
    for step in range(1, W):
        to, frm = (r + step) % W, (r - step) % W
        handles = [group.irecv(places[frm], frm)] if counts[frm] else []
        handles += [group.isend(pieces[to], to)] if send_sizes[to] else []
        for handle in handles:
            handle.wait()
    return result
