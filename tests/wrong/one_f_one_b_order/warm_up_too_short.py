# verdict: too-slow
# points: 2
# hint: p - 1 - r other micro-batches
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = min(max(0, p - 2 - r), m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops += [Op(r, "F", warmup + j)] * (warmup + j < m) + [Op(r, "B", j)]
        return ops

    return [rank(r) for r in range(p)]
