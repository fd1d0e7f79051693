# verdict: no-schedule
# points: 0
# hint: one list for each rank
from course_lib.schedule import Op


def gpipe_order(p, m):
    return [Op(r, k, j) for r in range(p) for k in "FB" for j in range(m)]
