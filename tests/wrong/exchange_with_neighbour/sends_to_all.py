# verdict: too-much-traffic
# points: 3
# hint: One message
import torch


def exchange_with_neighbour(x, group):
    others = [rank for rank in range(group.size) if rank != group.rank]
    sends = [group.isend(x, other) for other in others]
    received = {group.rank: x}
    for other in others:
        received[other] = group.recv(torch.empty_like(x), other)
    for send in sends:
        send.wait()
    return received[(group.rank - 1) % group.size]
