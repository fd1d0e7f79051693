# verdict: passed
# points: 6
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = min(p - 1 - r, m)
        fwd = [Op(r, "F", j) for j in reversed(range(m))]
        bwd = [Op(r, "B", j) for j in reversed(range(m))]
        ops = fwd[:warmup]
        for f, b in zip(fwd[warmup:], bwd):
            ops += [f, b]
        return ops + bwd[m - warmup:]

    return [rank(r) for r in range(p)]
