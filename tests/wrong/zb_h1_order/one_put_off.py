# verdict: too-slow
# points: 0
# hint: once r
from course_lib.schedule import Op


def zb_h1_order(p, m):
    schedule = []
    for r in range(p):
        warmup = min(p - 1 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            if warmup + j < m:
                ops.append(Op(r, "F", warmup + j))
            ops.append(Op(r, "I", j))
            lag = min(r, 1)
            if j >= lag:
                ops.append(Op(r, "W", j - lag))
        schedule.append(ops + [Op(r, "W", j) for j in range(max(0, m - min(r, 1)), m)])
    return schedule
