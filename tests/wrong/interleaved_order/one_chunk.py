# verdict: op-missing
# points: 0
# hint: each of its v chunks
from course_lib.schedule import Op


def interleaved_order(p, m, v):
    schedule = []
    for r in range(p):
        warmup = min(p - 1 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops += [Op(r, "F", warmup + j)] * (warmup + j < m) + [Op(r, "B", j)]
        schedule.append(ops)
    return schedule
