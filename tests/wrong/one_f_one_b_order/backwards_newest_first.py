# verdict: too-slow
# points: 2
# hint: oldest micro-batch first
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = min(p - 1 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m - warmup):
            ops += [Op(r, "F", warmup + j), Op(r, "B", warmup + j)]
        return ops + [Op(r, "B", j) for j in range(warmup)]

    return [rank(r) for r in range(p)]
