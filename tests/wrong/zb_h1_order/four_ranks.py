# verdict: only-four-ranks
# points: 3
# hint: a 3 or a 4
from course_lib.schedule import Op


def zb_h1_order(p, m):
    schedule = []
    for r in range(4):
        warmup = min(3 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            if warmup + j < m:
                ops.append(Op(r, "F", warmup + j))
            ops.append(Op(r, "I", j))
            if j >= r:
                ops.append(Op(r, "W", j - r))
        schedule.append(ops + [Op(r, "W", j) for j in range(max(0, m - r), m)])
    return schedule
