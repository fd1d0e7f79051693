# verdict: wrong-rank
# points: 0
# hint: own stage only
from course_lib.schedule import Op


def gpipe_order(p, m):
    return [[Op(s, k, j) for k in "FB" for j in range(m) for s in range(p)] for r in range(p)]
