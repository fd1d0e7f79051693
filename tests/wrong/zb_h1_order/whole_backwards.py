# verdict: whole-backwards
# points: 0
# hint: Take it apart
from course_lib.schedule import Op


def zb_h1_order(p, m):
    schedule = []
    for r in range(p):
        warmup = min(p - 1 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            if warmup + j < m:
                ops.append(Op(r, "F", warmup + j))
            ops.append(Op(r, "B", j))
        schedule.append(ops)
    return schedule
