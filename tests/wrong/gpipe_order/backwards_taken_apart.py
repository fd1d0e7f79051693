# verdict: halves
# points: 0
# hint: one op, B
from course_lib.schedule import Op


def gpipe_order(p, m):
    return [[Op(r, k, j) for k in "FIW" for j in range(m)] for r in range(p)]
