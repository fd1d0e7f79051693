# verdict: p-not-p-minus-1
# points: 0
# hint: p - 1 others, not for p
def bubbles(name, p, m):
    return (p, p / (p + 1)) if name == "naive" else (p / m, p / (m + p))
