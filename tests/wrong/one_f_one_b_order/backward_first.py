# verdict: illegal-order
# points: 0
# hint: comes after the
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = min(p - 1 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops += [Op(r, "B", j)] + [Op(r, "F", warmup + j)] * (warmup + j < m)
        return ops

    return [rank(r) for r in range(p)]
