# verdict: 1f1b-is-no-faster
# points: 3
# hint: exactly as long as GPipe
def bubbles(name, p, m):
    if name == "one_f_one_b":
        return 0, 0
    ratio = p - 1 if name == "naive" else (p - 1) / m
    return ratio, ratio / (1 + ratio)
