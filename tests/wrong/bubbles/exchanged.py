# verdict: exchanged
# points: 0
# hint: Fraction: idle over total
def bubbles(name, p, m):
    ratio = p - 1 if name == "naive" else (p - 1) / m
    return ratio / (1 + ratio), ratio
