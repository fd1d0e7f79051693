# verdict: few-micro-batches
# points: 5
# hint: at most m forwards
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = p - 1 - r
        fwd = [Op(r, "F", j) for j in range(max(m, warmup))]
        bwd = [Op(r, "B", j) for j in range(m)]
        steady = [op for pair in zip(fwd[warmup:], bwd) for op in pair]
        return fwd[:warmup] + steady + bwd[max(0, m - warmup):]

    return [rank(r) for r in range(p)]
