# verdict: above-par-loose
# points: 4
# hint: this is ZB-H2
from course_lib.schedule import Op


def beat(p, m, cap):
    schedule = []
    for r in range(p):
        more = min(cap - p, p - 1 - r, 1)
        warmup, pending = min(p - r + more, m), r + cap - p - more
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops.append(Op(r, "I", j))
            if j >= pending:
                ops.append(Op(r, "W", j - pending))
            if warmup + j < m:
                ops.append(Op(r, "F", warmup + j))
        schedule.append(ops + [Op(r, "W", j) for j in range(max(0, m - pending), m)])
    return schedule
