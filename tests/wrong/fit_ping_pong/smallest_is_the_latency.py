# verdict: wrong-line
# points: 0
# hint: meets 0 bytes


def fit_ping_pong(sizes, seconds):
    latency = seconds[0] / 2
    return latency, (sizes[-1] - sizes[0]) / (seconds[-1] / 2 - latency)
