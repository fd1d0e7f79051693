# verdict: gpipe-again
# points: 0
# hint: This is GPipe
from course_lib.schedule import Op


def one_f_one_b_order(p, m):
    def rank(r):
        return [Op(r, k, j) for k in "FB" for j in range(m)]

    return [rank(r) for r in range(p)]
