# verdict: ratio-twice
# points: 0
# hint: m + p - 1 slots
def bubbles(name, p, m):
    ratio = p - 1 if name == "naive" else (p - 1) / m
    return ratio, ratio
