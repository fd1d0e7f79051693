# verdict: passed
# points: 4


def fit_ping_pong(sizes, seconds):
    weights = [1 / t**2 for t in seconds]
    total = sum(weights)
    n0 = sum(w * n for w, n in zip(weights, sizes)) / total
    t0 = sum(w * t for w, t in zip(weights, seconds)) / total
    rise = sum(w * (n - n0) * (t - t0) for w, n, t in zip(weights, sizes, seconds))
    slope = rise / sum(w * (n - n0) ** 2 for w, n in zip(weights, sizes)) / 2
    return [t0 / 2 - slope * n0, 1 / slope]
