# verdict: illegal-order
# points: 0
# hint: which op waits for which
from course_lib.schedule import Op


def gpipe_order(p, m):
    schedule = [[Op(r, k, j) for k in "FB" for j in range(m)] for r in range(p)]
    schedule[-1].reverse()
    return schedule
