# verdict: passed
# points: 4
from course_lib.schedule import Op


def gpipe_order(p, m):
    return [[Op(r, "F", j) for j in range(m)] + [Op(r, "B", j) for j in reversed(range(m))]
            for r in range(p)]
