# verdict: too-slow
# points: 2
# hint: warm-up too short
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        return [Op(r, k, j) for j in range(m) for k in "FB"]

    return [rank(r) for r in range(p)]
