# verdict: same-warm-up
# points: 0
# hint: depends on the rank
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = min(p - 1, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops += [Op(r, "F", warmup + j)] * (warmup + j < m) + [Op(r, "B", j)]
        return ops

    return [rank(r) for r in range(p)]
