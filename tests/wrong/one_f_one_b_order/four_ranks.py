# verdict: only-four-ranks
# points: 3
# hint: a 3 or a 4
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = min(3 - r, m)
        ops = [Op(r, "F", j) for j in range(warmup)]
        for j in range(m):
            ops += [Op(r, "F", warmup + j)] * (warmup + j < m) + [Op(r, "B", j)]
        return ops

    return [rank(r) for r in range(4)]
