# verdict: no-latency
# points: 0
# hint: Two unknowns need a


def fit_ping_pong(sizes, seconds):
    rates = [2 * n / t for n, t in zip(sizes, seconds)]
    return 0.0, sum(rates) / len(rates)
