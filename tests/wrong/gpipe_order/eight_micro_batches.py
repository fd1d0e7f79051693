# verdict: only-eight-micro-batches
# points: 2
# hint: It is m
from course_lib.schedule import Op


def gpipe_order(p, m):
    return [[Op(r, k, j) for k in "FB" for j in range(8)] for r in range(p)]
