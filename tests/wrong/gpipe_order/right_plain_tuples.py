# verdict: passed
# points: 4
def gpipe_order(p, m):
    return tuple([(r, k, m - 1 - j) for k in "FB" for j in range(m)] for r in range(p))
