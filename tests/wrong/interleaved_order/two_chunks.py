# verdict: only-two-chunks
# points: 5
# hint: a 2 in your code
from course_lib.schedule import Op


def interleaved_order(p, m, v):
    turns = [(c, j + k) for j in range(0, m, p) for c in range(2) for k in range(p)]
    schedule = []
    for r in range(p):
        fwd = [Op(c * p + r, "F", j) for c, j in turns]
        bwd = [Op((1 - c) * p + r, "B", j) for c, j in turns]
        warmup = min(2 * (p - 1 - r) + p, m * 2)
        ops = fwd[:warmup]
        for pair in zip(fwd[warmup:], bwd):
            ops += pair
        schedule.append(ops + bwd[m * 2 - warmup:])
    return schedule
