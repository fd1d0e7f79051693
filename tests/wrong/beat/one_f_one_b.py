# verdict: slower-than-1f1b
# points: 0
# hint: Take the backwards apart
from course_lib.schedule import Op


def beat(p, m, cap):
    schedule = []
    for r in range(p):
        warmup = min(p - 1 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops += [Op(r, "F", warmup + j)] * (warmup + j < m) + [Op(r, "B", j)]
        schedule.append(ops)
    return schedule
