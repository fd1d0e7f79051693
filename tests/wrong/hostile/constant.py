# verdict: wrong-value
# runs in: soak
import torch


def exchange_with_neighbour(x, group):
    return torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
