# verdict: total-too-long
# points: 0
# hint: p - 1 idle ones
def bubbles(name, p, m):
    return (p - 1, (p - 1) / p) if name == "naive" else ((p - 1) / m, (p - 1) / (m + p))
