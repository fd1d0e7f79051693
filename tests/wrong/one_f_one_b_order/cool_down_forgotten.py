# verdict: op-missing
# points: 0
# hint: left over at the end
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        warmup = min(p - 1 - r, m)
        fwd = [Op(r, "F", j) for j in range(m)]
        bwd = [Op(r, "B", j) for j in range(m)]
        return fwd[:warmup] + [op for pair in zip(fwd[warmup:], bwd) for op in pair]

    return [rank(r) for r in range(p)]
