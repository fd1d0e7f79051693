# verdict: zb-h2-again
# points: 0
# hint: warm-up of 1F1B
from course_lib.schedule import Op


def zb_h1_order(p, m):
    schedule = []
    for r in range(p):
        warmup = min(2 * (p - r) - 1, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops.append(Op(r, "I", j))
            if j >= 2 * r:
                ops.append(Op(r, "W", j - 2 * r))
            if warmup + j < m:
                ops.append(Op(r, "F", warmup + j))
        schedule.append(ops + [Op(r, "W", j) for j in range(max(0, m - 2 * r), m)])
    return schedule
