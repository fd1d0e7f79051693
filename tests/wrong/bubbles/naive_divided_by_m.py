# verdict: naive-as-gpipe
# points: 3
# hint: in however many pieces
def bubbles(name, p, m):
    idle, useful = p - 1, m
    if name == "naive":
        idle, useful = (p - 1) / m, 1
    return idle / useful, idle / (useful + idle)
