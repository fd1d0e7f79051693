# verdict: passed
# points: 4
import torch


def fit_ping_pong(sizes, seconds):
    n, t = torch.tensor(sizes).double(), torch.tensor(seconds).double() / 2
    rows = torch.stack([1 / t, n / t], dim=1)
    latency, slope = torch.linalg.lstsq(rows, torch.ones(len(n), 1).double()).solution[:, 0]
    return latency, 1 / slope
