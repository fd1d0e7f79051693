# verdict: naive-as-gpipe
# points: 3
# hint: one rank works at a time
def bubbles(name, p, m):
    return (p - 1) / m, (p - 1) / (m + p - 1)
