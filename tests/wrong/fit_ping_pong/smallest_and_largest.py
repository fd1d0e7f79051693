# verdict: large-ones-decide
# points: 2
# hint: two messages are too few


def fit_ping_pong(sizes, seconds):
    (n, t), (m, u) = min(zip(sizes, seconds)), max(zip(sizes, seconds))
    slope = (u - t) / 2 / (m - n)
    return t / 2 - slope * n, 1 / slope
