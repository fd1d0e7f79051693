# verdict: passed
# points: 4
def bubbles(name, p, m):
    if name == "naive":
        return p - 1, (p - 1) / p
    return (p - 1) / m, (p - 1) / (m + p - 1)
