# verdict: percent
# points: 0
# hint: 0.375
def bubbles(name, p, m):
    ratio = p - 1 if name == "naive" else (p - 1) / m
    return 100 * ratio, 100 * ratio / (1 + ratio)
