# verdict: micro-batches-ignored
# points: 0
# hint: This is the naive pipeline
def bubbles(name, p, m):
    return p - 1, (p - 1) / p
