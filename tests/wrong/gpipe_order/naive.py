# verdict: too-slow
# points: 1
# hint: in one order
from course_lib.schedule import Op


def gpipe_order(p, m):
    def order(r):
        return range(m) if r % 2 == 0 else range(m)[::-1]

    return [[*(Op(r, "F", j) for j in order(r)), *(Op(r, "B", j) for j in order(r + p))]
            for r in range(p)]
