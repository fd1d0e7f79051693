# verdict: only-four-ranks
# points: 4
# hint: a 3 or a 4
from course_lib.schedule import Op


def interleaved_order(p, m, v):
    turns = [(c, j + k) for j in range(0, m, 4) for c in range(v) for k in range(4)]
    schedule = []
    for r in range(4):
        fwd = [Op(c * 4 + r, "F", j) for c, j in turns]
        bwd = [Op((v - 1 - c) * 4 + r, "B", j) for c, j in turns]
        warmup = min(2 * (3 - r) + (v - 1) * 4, m * v)
        ops = fwd[:warmup]
        for pair in zip(fwd[warmup:], bwd):
            ops += pair
        schedule.append(ops + bwd[m * v - warmup:])
    return schedule
