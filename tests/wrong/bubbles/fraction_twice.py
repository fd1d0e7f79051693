# verdict: fraction-twice
# points: 0
# hint: useful time alone
def bubbles(name, p, m):
    fraction = (p - 1) / p if name == "naive" else (p - 1) / (m + p - 1)
    return fraction, fraction
