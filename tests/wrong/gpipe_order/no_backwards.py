# verdict: op-missing
# points: 0
# hint: all m backwards
from course_lib.schedule import Op


def gpipe_order(p, m):
    return [[Op(r, "F", j) for j in range(m)] for r in range(p)]
