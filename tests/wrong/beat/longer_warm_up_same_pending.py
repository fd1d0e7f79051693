# verdict: slower-than-zb-h1
# points: 2
# hint: One micro-batch more
from course_lib.schedule import Op


def beat(p, m, cap):
    schedule = []
    for r in range(p):
        more = min(cap - p, p - 1 - r)
        warmup, pending = min(p - r + more, m), r
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops.append(Op(r, "I", j))
            if j >= pending:
                ops.append(Op(r, "W", j - pending))
            if warmup + j < m:
                ops.append(Op(r, "F", warmup + j))
        schedule.append(ops + [Op(r, "W", j) for j in range(max(0, m - pending), m)])
    return schedule
