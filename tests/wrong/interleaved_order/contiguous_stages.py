# verdict: wrong-rank
# points: 0
# hint: dealt out like cards
from course_lib.schedule import Op


def interleaved_order(p, m, v):
    turns = [(c, j + k) for j in range(0, m, p) for c in range(v) for k in range(p)]
    schedule = []
    for r in range(p):
        fwd = [Op(r * v + c, "F", j) for c, j in turns]
        bwd = [Op(r * v + v - 1 - c, "B", j) for c, j in turns]
        warmup = min(2 * (p - 1 - r) + (v - 1) * p, m * v)
        ops = fwd[:warmup]
        for pair in zip(fwd[warmup:], bwd):
            ops += pair
        schedule.append(ops + bwd[m * v - warmup:])
    return schedule
