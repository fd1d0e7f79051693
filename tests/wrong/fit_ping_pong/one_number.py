# verdict: no-pair
# points: 0
# hint: two numbers


def fit_ping_pong(sizes, seconds):
    return min(seconds) / 2
