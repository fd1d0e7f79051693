# verdict: no-pair
# points: 0
# hint: both numbers
def bubbles(name, p, m):
    return p - 1 if name == "naive" else (p - 1) / m
